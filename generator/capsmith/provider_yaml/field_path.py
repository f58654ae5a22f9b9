"""``fieldPath`` of a validation rule: the field that a violation is reported for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_STEP = re.compile(r"\.([^.\[\]'\s]+)|\['((?:\\'|[^'\n])+)'\]")
_FIELD_PATH = re.compile(f"(?:{_STEP.pattern})+")


class UnknownField(NamedTuple):
    """A step of a path that leads nowhere, and the names that would."""

    name: str
    known: tuple[str, ...]


def is_field_path(text: str) -> bool:
    """Return whether ``text`` has the form of a path, such as ``.cidr`` or ``['a.b']``."""
    return _FIELD_PATH.fullmatch(text) is not None


def unknown_field(path: str, schema: Mapping[str, Any]) -> UnknownField | None:
    """Return the first step of ``path`` that the schema does not declare, or None."""
    for step in _STEP.finditer(path):
        name = (step[1] or step[2]).replace("\\'", "'")
        properties = schema.get("properties")
        if properties is None and "additionalProperties" in schema:
            schema = schema["additionalProperties"]
        elif properties is None or name not in properties:
            return UnknownField(name, tuple(properties or ()))
        else:
            schema = properties[name]
    return None
