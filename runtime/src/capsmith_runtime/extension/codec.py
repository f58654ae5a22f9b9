"""Read the request of a hook, and write its response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from capsmith_runtime.contract.model import Object


@dataclass(frozen=True, slots=True)
class Codec:
    """Conversion between JSON and the types of one hook."""

    read: Callable[[Object], Any]
    """Returns the argument of the hook method, from the JSON of the request."""
    results: tuple[type, ...]
    """The types that the hook method may return."""
    write: Callable[[Any, Any], dict[str, Any]]
    """Returns the fields of the response except its status, from result and request."""
