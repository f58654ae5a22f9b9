"""The one Jinja environment: strict about what is undefined, and about what may be printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from jinja2 import BytecodeCache, Environment, FunctionLoader, StrictUndefined, Undefined
from jinja2.bccache import Bucket

from capsmith.blueprint.compiling import LiteralsAreSafe
from capsmith.blueprint.filters import FILTERS
from capsmith.blueprint.provider_filters import PROVIDER_FILTERS
from capsmith.safetext import SafeText


class Cache(Protocol):
    """A place to keep what is slow to compute again; losing it costs time only."""

    def get(self, key: str) -> bytes | None:
        """What was kept under ``key``."""

    def put(self, key: str, value: bytes) -> None:
        """Keep ``value``; failing to is no error."""


class UnsafeText(Exception):
    """A blueprint printed text that no literal filter had made safe."""


def refuse_unsafe(value: Any) -> Any:
    """Let only safe text and numbers through (``finalize`` of the environment).

    Raises UnsafeText for everything else.
    """
    if isinstance(value, SafeText) or type(value) in (int, float):
        return value
    if isinstance(value, Undefined):
        str(value)  # raises, and names what is undefined
    raise UnsafeText(f"{value!r} ({type(value).__name__}) is printed without a literal filter")


class _KeptBytecode(BytecodeCache):
    def __init__(self, cache: Cache, key: str) -> None:
        self._cache = cache
        self._key = key

    def load_bytecode(self, bucket: Bucket) -> None:
        kept = self._cache.get(f"bytecode-{self._key}-{bucket.key}")
        if kept is not None:
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._cache.put(f"bytecode-{self._key}-{bucket.key}", bucket.bytecode_to_string())


RULES: Mapping[str, Any] = {
    "undefined": StrictUndefined,
    "finalize": refuse_unsafe,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
    "autoescape": False,
    "auto_reload": False,
}
"""How blueprints are read, capsmith's and those of overlays."""


class BlueprintEnvironment(Environment):
    """Jinja with the rules of this project."""

    code_generator_class = LiteralsAreSafe
    safe_literal: Callable[[str], SafeText] = SafeText


def make_environment(sources: Mapping[str, str], cache: Cache | None, key: str) -> Environment:
    """An environment that loads blueprints from ``sources`` (path -> text).

    ``cache`` keeps compiled blueprints, under ``key`` (capsmith's version).
    """
    environment = BlueprintEnvironment(
        loader=FunctionLoader(lambda name: sources.get(name)),
        bytecode_cache=_KeptBytecode(cache, key) if cache is not None else None,
        **RULES,
    )
    environment.filters.update(FILTERS)
    environment.filters.update(PROVIDER_FILTERS)
    return environment
