"""The environment of overlays: somebody else's blueprints, which may do little, and little of it.

On top of what holds for capsmith's own blueprints: no way from a value to Python, only those
filters and calls that are named here, nothing random, and a budget of steps.  Steps and not
seconds, so that the same overlay gives the same answer on every machine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from jinja2 import FunctionLoader, TemplateNotFound
from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.utils import Namespace

from capsmith.blueprint.compiling import Counted
from capsmith.blueprint.environment import RULES
from capsmith.blueprint.filters import FILTERS
from capsmith.blueprint.provider_filters import PROVIDER_FILTERS
from capsmith.provider.model import Component, Provider
from capsmith.provider.topology import Topology
from capsmith.safetext import SafeText

ORIGINAL = "capsmith:"
"""What stands before the name of capsmith's own blueprint: ``capsmith:project/Makefile.jinja``."""
MOST_STEPS = 500_000
"""For one file."""
MOST_STEPS_IN_ALL = 5_000_000
MOST_TEXT = 1024 * 1024
"""Characters of one text."""
MOST_ITEMS = 100_000
"""Of one list or mapping, with all that is in it."""
_WIDEST = 200
_NUMBER = 2**63
_JINJA_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "int", "items", "last"),
    *("length", "list", "map", "max", "min", "reject", "rejectattr", "reverse", "select"),
    *("selectattr", "sort", "string", "trim", "unique"),
)
_WIDENING = frozenset({"to_yaml", "json_literal", "comment"})
"""Filters that take a number of columns."""
_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset({"endswith", "removeprefix", "removesuffix", "split", "startswith"}),
    dict: frozenset({"get", "items", "keys", "values"}),
    MappingProxyType: frozenset({"get", "items", "keys", "values"}),
    LoopContext: frozenset({"changed", "cycle"}),
    Provider: frozenset({"component"}),
    Component: frozenset({"role"}),
    Topology: frozenset({"pool_variables"}),
}
_CALLABLE = (Macro, BlockReference, LoopContext, Undefined)


class OverBudget(Exception):
    """A blueprint of an overlay does more, or makes more, than any file needs."""


class OverlayEnvironment(ImmutableSandboxedEnvironment):
    """Jinja for blueprints that capsmith does not know."""

    code_generator_class = Counted
    safe_literal: Callable[[str], SafeText] = SafeText
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self, load: Callable[[str], tuple[str, str, None] | None]) -> None:
        super().__init__(loader=FunctionLoader(load), optimized=False, **RULES)
        self._steps = self._all_steps = 0
        self.globals = {"range": safe_range, "dict": dict, "namespace": Namespace}
        known = {name: self.filters[name] for name in _JINJA_FILTERS}
        known |= {**FILTERS, **PROVIDER_FILTERS}
        self.filters = {name: self._counted(name, known[name]) for name in known}

    def begin(self) -> None:
        """Another file, with steps of its own."""
        self._steps = 0

    def turn(self) -> bool:
        """Count one step.  Raises OverBudget after the last."""
        self._spend(1)
        return True

    def weighed(self, value: Any) -> Any:
        """``value`` itself, counted with all that is in it.  Raises OverBudget."""
        waiting, weight = [value], 0
        while waiting:
            each = waiting.pop()
            if isinstance(each, str):
                if len(each) > MOST_TEXT:
                    raise OverBudget(f"a text of more than {MOST_TEXT} characters")
                weight += len(each) // 64
            elif isinstance(each, Mapping):
                waiting += [*each.keys(), *each.values()]
            elif isinstance(each, list | tuple | set | frozenset):
                waiting += each
            weight += 1
            if weight + len(waiting) > MOST_ITEMS:
                raise OverBudget(f"a value of more than {MOST_ITEMS} parts")
        self._spend(weight)
        return value

    def concat(self, pieces: Iterable[str]) -> SafeText:
        """Pieces that were each found to be safe when they were printed, as one safe text."""
        kept, length = [], 0
        for piece in pieces:
            length += len(piece)
            if length > MOST_TEXT:
                raise OverBudget(f"a text of more than {MOST_TEXT} characters")
            kept.append(piece)
        self._spend(1 + length // 64)
        return SafeText("".join(kept))

    def get_template(self, *arguments: Any, **options: Any) -> Any:
        """As Jinja does; looking for a blueprint is a step."""
        self.turn()
        return super().get_template(*arguments, **options)

    def select_template(self, *arguments: Any, **options: Any) -> Any:
        """As :meth:`get_template`."""
        self.turn()
        return super().select_template(*arguments, **options)

    def is_safe_callable(self, obj: Any) -> bool:
        """Only what is named in this module."""
        if isinstance(obj, _CALLABLE) or obj in (safe_range, dict, Namespace, self.turn):
            return True
        owner = getattr(obj, "__self__", None)
        names = (names for type_, names in _METHODS.items() if isinstance(owner, type_))
        return getattr(obj, "__name__", "") in next(names, ())

    def call(self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what may be called, and count what comes back.  Raises SecurityError."""
        self.turn()
        if not self.is_safe_callable(__obj):
            name = getattr(__obj, "__name__", type(__obj).__name__)
            raise SecurityError(f"`{name}` may not be called in an overlay")
        return self.weighed(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Numbers of a machine's size, and ``+`` of texts and lists.

        Raises SecurityError for other operands.
        """
        numbers = all(isinstance(each, int | float) for each in (left, right))
        if operator == "**" or not (numbers or operator == "+"):
            raise SecurityError(f"`{operator}` of such values is not allowed in an overlay")
        value = self.weighed(super().call_binop(context, operator, left, right))
        if isinstance(value, int) and abs(value) > _NUMBER:
            raise OverBudget("a number of more than 64 bits")
        return value

    def _spend(self, steps: int) -> None:
        self._steps += steps
        self._all_steps += steps
        if self._steps > MOST_STEPS or self._all_steps > MOST_STEPS_IN_ALL:
            raise OverBudget(f"more than {MOST_STEPS} steps for a file")

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*values: Any, **named: Any) -> Any:
            options = (*values[1:], *named.values())
            if name in _WIDENING and any(isinstance(o, int) and o > _WIDEST for o in options):
                raise OverBudget(f"more than {_WIDEST} columns")
            return self.weighed(function(*values, **named))

        return run


def loader(
    own: Mapping[str, str], overlay: Mapping[str, str], where: str
) -> Callable[[str], tuple[str, str, None] | None]:
    """Finds blueprints by name: an overlay's first, and capsmith's, always behind ``capsmith:``.

    ``where`` is the folder of the overlay as people know it.
    """

    def load(name: str) -> tuple[str, str, None] | None:
        if name in overlay:
            return overlay[name], f"{where}/{name}", None
        bare = name.removeprefix(ORIGINAL)
        if bare not in own:
            raise TemplateNotFound(name, f"there is no blueprint {name}")
        return own[bare], ORIGINAL + bare, None

    return load
