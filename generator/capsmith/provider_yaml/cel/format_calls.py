"""Find calls of ``format`` on literal texts that cannot succeed, as cel-go does when it compiles.

The library only notices them when an expression is evaluated. Source: github.com/google/cel-go,
ext/formatting.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

_CLAUSE = re.compile(r"%(?:(%)|(\.)?([0-9]*)(.?))", re.DOTALL)
_INTEGERS = ("int", "uint")
_TYPES: Mapping[str, Sequence[str]] = {
    "d": _INTEGERS,
    "o": _INTEGERS,
    "b": (*_INTEGERS, "bool"),
    "x": (*_INTEGERS, "string", "bytes"),
    "X": (*_INTEGERS, "string", "bytes"),
    # The strings are "NaN", "Infinity" and "-Infinity".
    "f": ("double", "string"),
    "e": ("double", "string"),
    "s": (
        *(*_INTEGERS, "double", "bool", "string", "bytes", "timestamp", "duration", "null"),
        *("list", "map", "type"),
    ),
}
"""Types of values that each clause can format."""


def find_format_faults(text: str, types: Sequence[str]) -> Iterator[tuple[int | None, str]]:
    """Yield the first reason why values of these types cannot be formatted with ``text``.

    It comes with the number of the value, or None if no value is the reason.  Values of the type
    ``dyn`` are of any type.
    """
    used = 0
    for percent, dot, precision, clause in _CLAUSE.findall(text):
        if percent:
            continue
        if not dot and precision:  # digits alone are not a clause
            clause, precision = precision[0], ""
        if clause not in _TYPES or not clause or (dot and not precision):
            yield None, f"{f'%{dot}{precision}{clause}'!r} is not a clause of `format`"
            return
        if used >= len(types):
            yield None, f"`format` has more clauses than its {len(types)} values"
            return
        if types[used] not in (*_TYPES[clause], "dyn"):
            yield used, f"'%{clause}' of `format` cannot be used with a value of type {types[used]}"
            return
        used += 1
    if used < len(types):
        yield None, f"`format` has {len(types)} values, but clauses for {used} of them"
