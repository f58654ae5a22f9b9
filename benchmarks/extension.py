"""What the blueprints expect of Jinja, for the peers: their filters and what they render.

Both peers load it by name as a Jinja extension.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from jinja2.ext import Extension

from capsmith.blueprint.filters import FILTERS
from capsmith.blueprint.provider_filters import PROVIDER_FILTERS
from capsmith.safetext import SafeText

CONTEXTS = "CAPSMITH_BENCHMARK_CONTEXTS"


class Blueprints(Extension):
    """Filters as capsmith has them, and ``contexts``: path of a file -> what its blueprint sees."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.filters.update(FILTERS)
        environment.filters.update(PROVIDER_FILTERS)
        for name in _TRUSTING:
            environment.filters[name] = _trusting(environment.filters[name])
        environment.globals["contexts"] = _contexts(os.environ[CONTEXTS])


_TRUSTING = ("join", "comment", "kind_of")
"""Filters that take words of a blueprint, which capsmith's environment marks as such."""


def _trusting(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(value: Any, *words: str) -> Any:
        return function(value, *map(SafeText, words))

    return call


@cache
def _contexts(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())
