"""Functions of Go's templates, for texts, whole numbers, booleans and mappings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from capsmith.manifests.template_tree import UnsupportedError


class ExecutionError(Exception):
    """Raised if Go would fail to execute a template."""


MISSING = object()
"""Placeholder for the value before the first command of a pipeline."""
_COUNTS: Mapping[str, tuple[int, int | None]] = {
    **dict.fromkeys(("and", "or", "call", "eq", "index", "printf", "slice"), (1, None)),
    **dict.fromkeys(("len", "not"), (1, 1)),
    **dict.fromkeys(("ge", "gt", "le", "lt", "ne"), (2, 2)),
}
"""How many arguments functions have, at least and at most; others have any number."""
_PLAIN = re.compile("[A-Za-z0-9.-]*")
"""Texts that no function escapes."""
_VERB = re.compile(r"%(?:(%)|(?:\.([0-9]{1,9}))?([sv])|(d)|(.?))", re.DOTALL)
_LONGEST = 4096
_TYPES = {bool: "bool", int: "int", str: "string"}


def list_counts(name: str) -> tuple[int, int | None]:
    """Return how many arguments a function has, at least and at most; None for any number."""
    return _COUNTS.get(name, (0, None))


def name_type(value: Any) -> str:
    """Return the name of a value's type in Go."""
    return _TYPES.get(type(value), "nil" if value is None else "map[string]interface {}")


def is_true(value: Any) -> bool:
    """Return whether a value is true for ``if``."""
    return bool(value)


def format_value(value: Any, nothing: str = "<nil>") -> str:
    """Return a value as Go prints it; ``nothing`` is the text for a missing value."""
    if value is None:
        return nothing
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        parts = (f"{key}:{format_value(value[key])}" for key in sorted(value))
        return f"map[{' '.join(parts)}]"
    return str(value)


def call_function(name: str, values: Sequence[Any]) -> Any:
    """Return the result of a function; ``values`` are as many as it takes.

    Raises ExecutionError if it fails, and UnsupportedError if the result is not known here.
    """
    function = _FUNCTIONS.get(name)
    if function is None:
        raise UnsupportedError(name)
    result = function(values)
    # A short template can double a text again and again.
    if isinstance(result, str) and len(result) > _LONGEST:
        raise UnsupportedError("a long text")
    return result


def _not(values: Sequence[Any]) -> bool:
    return not is_true(values[0])


def _call(values: Sequence[Any]) -> Any:
    raise ExecutionError(f"calls {name_type(values[0])}, which is not a function")


def _equal(values: Sequence[Any]) -> bool:
    if len(values) == 1:
        raise ExecutionError("compares a value with none")
    first, *others = values
    for each in others:
        if None in (first, each):
            raise UnsupportedError("nil")
        if type(first) is not type(each) or isinstance(first, Mapping):
            raise ExecutionError(f"compares {name_type(first)} with {name_type(each)}")
        if first == each:
            return True
    return False


def _less(values: Sequence[Any]) -> bool:
    first, second = values
    for each in (first, second):
        if isinstance(each, bool | Mapping | None):
            raise ExecutionError(f"orders {name_type(each)}")
    if type(first) is not type(second):
        raise ExecutionError(f"compares {name_type(first)} with {name_type(second)}")
    is_less: bool = first < second
    return is_less


def _is_at_most(values: Sequence[Any]) -> bool:
    return _less(values) or _equal(values)


def _len(values: Sequence[Any]) -> int:
    (value,) = values
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping):
        return len(value)
    raise ExecutionError(f"takes the length of {name_type(value)}")


def _index(values: Sequence[Any]) -> Any:
    value, *keys = values
    for key in keys:
        if isinstance(value, str):
            if type(key) is int and 0 <= key < len(value.encode()):
                raise UnsupportedError("a byte of a text")
            raise ExecutionError(f"has index {format_value(key)} of a text")
        if not isinstance(value, Mapping) or not isinstance(key, str):
            raise ExecutionError(f"has an index of {name_type(value)}")
        value = value.get(key)
    return value


def _slice(values: Sequence[Any]) -> str:
    value, *places = values
    if not isinstance(value, str) or not value.isascii():
        if isinstance(value, str):
            raise UnsupportedError("a text with other characters")
        raise ExecutionError(f"slices {name_type(value)}")
    if len(places) > 2:
        raise ExecutionError("slices a text with three indexes")
    for place in places:
        if type(place) is not int or not 0 <= place <= len(value):
            raise ExecutionError(
                f"slices {value!r}, which has {len(value)} characters, at {format_value(place)}"
            )
    start, stop = (*places, len(value))[:2] if places else (0, len(value))
    if start > stop:
        raise ExecutionError(f"slices from {start} to {stop}")
    return value[start:stop]


def _print(values: Sequence[Any]) -> str:
    text = ""
    for number, value in enumerate(values):
        # Go writes a space only between operands of which none is a text.
        between = number and not isinstance(value, str) and not isinstance(values[number - 1], str)
        text += " " * bool(between) + format_value(value)
    return text


def _println(values: Sequence[Any]) -> str:
    return " ".join(map(format_value, values)) + "\n"


def _printf(values: Sequence[Any]) -> str:
    form, *rest = values
    if not isinstance(form, str):
        raise ExecutionError(f"prints with a format that is {name_type(form)}")

    def replace(match: re.Match[str]) -> str:
        percent, precision, verb, decimal, other = match.groups()
        if percent:
            return "%"
        if other is not None:
            raise UnsupportedError(match[0])
        if not rest:
            return f"%!{verb or decimal}(MISSING)"
        value = rest.pop(0)
        if type(value) is int and verb != "s" and precision is None:
            return str(value)
        if isinstance(value, str) and not decimal:
            return value[: int(precision)] if precision is not None else value
        if isinstance(value, str | int) and not isinstance(value, bool) and precision is None:
            return f"%!{verb or decimal}({name_type(value)}={value})"
        raise UnsupportedError(match[0])

    text = _VERB.sub(replace, form)
    extra = ", ".join(f"{name_type(value)}={format_value(value)}" for value in rest)
    return f"{text}%!(EXTRA {extra})" if rest else text


def _escape(values: Sequence[Any]) -> str:
    text = _print(values)
    if not _PLAIN.fullmatch(text):
        raise UnsupportedError("characters that are escaped")
    return text


_FUNCTIONS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "call": _call,
    "eq": _equal,
    "ge": lambda values: not _less(values),
    "gt": lambda values: not _is_at_most(values),
    "html": _escape,
    "index": _index,
    "js": _escape,
    "le": _is_at_most,
    "len": _len,
    "lt": _less,
    "ne": lambda values: not _equal(values),
    "not": _not,
    "print": _print,
    "printf": _printf,
    "println": _println,
    "slice": _slice,
    "urlquery": _escape,
}
