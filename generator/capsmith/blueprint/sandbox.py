"""The environment of overlays: Jinja's sandbox, with the rules for capsmith's blueprints.

An overlay lies in the author's repository, so this guards against mistakes that a review may miss,
not against an author: values lead to no Python, calls change nothing, and the same overlay gives
the same text everywhere.  How much a blueprint does is not limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from jinja2 import FunctionLoader, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.utils import Namespace

from capsmith.blueprint.environment import RULES, LiteralsAreSafe
from capsmith.blueprint.filters import FILTERS
from capsmith.blueprint.provider_filters import PROVIDER_FILTERS
from capsmith.output.topology import Topology
from capsmith.provider.model import Component, Provider
from capsmith.safetext import SafeText

ORIGINAL = "capsmith:"
"""The prefix that names capsmith's own blueprint: ``capsmith:project/Makefile.jinja``."""
_GLOBALS: Mapping[str, Any] = {"range": safe_range, "dict": dict, "namespace": Namespace}
_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset({"endswith", "removeprefix", "removesuffix", "split", "startswith"}),
    dict: frozenset({"get", "items", "keys", "values"}),
    MappingProxyType: frozenset({"get", "items", "keys", "values"}),
    LoopContext: frozenset({"changed", "cycle"}),
    Provider: frozenset({"component"}),
    Component: frozenset({"role"}),
    Topology: frozenset({"pool_variables"}),
}
_LONG_INTEGER = re.compile(r"[0-9][0-9_]{4000,}")
_CALLABLE = (Macro, BlockReference, LoopContext, Undefined)


class OverlayEnvironment(ImmutableSandboxedEnvironment):
    """Jinja for blueprints of an author."""

    code_generator_class = LiteralsAreSafe
    safe_literal: Callable[[str], SafeText] = SafeText

    def __init__(self, load: Callable[[str], tuple[str, str, None] | None]) -> None:
        # The optimizer would turn results of filters and operators into literals, which are safe.
        super().__init__(loader=FunctionLoader(load), optimized=False, **RULES)
        self.globals = dict(_GLOBALS)
        self.filters.update(FILTERS)
        self.filters.update(PROVIDER_FILTERS)
        del self.filters["random"]  # the same input has to give the same tree
        del self.filters["attr"]  # it reaches methods, which are not data

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        try:
            return super()._parse(source, name, filename)
        except ValueError as error:  # of int(), from which the lexer takes no place along
            long = _LONG_INTEGER.search(source)
            line = source.count("\n", 0, long.start()) + 1 if long else 1
            message = "an integer has too many digits"
            raise TemplateSyntaxError(message, line, name, filename) from error

    def concat(self, pieces: Iterable[str]) -> SafeText:
        """Join pieces that were each found to be safe when they were printed."""
        return SafeText("".join(pieces))

    def is_safe_callable(self, obj: Any) -> bool:
        """Return whether ``obj`` is one of the few calls that only read."""
        if isinstance(obj, _CALLABLE) or obj in _GLOBALS.values():
            return True
        owner = getattr(obj, "__self__", None)
        names = (names for type_, names in _METHODS.items() if isinstance(owner, type_))
        return getattr(obj, "__name__", "") in next(names, ())

    def call(self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what may be called.  Raises SecurityError."""
        if not self.is_safe_callable(__obj):
            # Jinja's message holds an address, which differs from run to run.
            name = getattr(__obj, "__name__", type(__obj).__name__)
            raise SecurityError(f"`{name}` cannot be called in an overlay")
        return super().call(__context, __obj, *args, **kwargs)


def loader(
    own: Mapping[str, str], overlay: Mapping[str, str], where: str
) -> Callable[[str], tuple[str, str, None] | None]:
    """Return a loader of blueprints by name: the overlay's first, then capsmith's.

    Names that begin with ``capsmith:`` always mean capsmith's.  ``where`` is the folder of the
    overlay, as findings name it.
    """

    def load(name: str) -> tuple[str, str, None] | None:
        if name in overlay:
            return overlay[name], f"{where}/{name}", None
        bare = name.removeprefix(ORIGINAL)
        if bare not in own:
            raise TemplateNotFound(name, f"no such blueprint: {name}")
        return own[bare], ORIGINAL + bare, None

    return load
