"""The value of a substitution, computed as drone/envsubst does.

Values that are not given stay as ``${NAME}``: the result shows what a user has to set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from capsmith.manifests.envsubst import Substitution

_Function = Callable[..., str]


def expand(substitution: Substitution, values: Mapping[str, str]) -> str:
    """Return the text that replaces ``substitution``.

    Raises ValueError where clusterctl ends with a panic: a substring of a negative length.
    """
    arguments = [
        argument if isinstance(argument, str) else expand(argument, values)
        for argument in substitution.arguments
    ]
    value = values.get(substitution.name, "")
    if substitution.is_default:
        return value or "".join(arguments) or _placeholder(substitution)
    if substitution.name not in values:
        return _placeholder(substitution)
    function = _FUNCTIONS.get(substitution.operator)
    if substitution.operator == "#" and not arguments:
        return str(len(value.encode()))
    return function(value, *arguments) if function else value


def _placeholder(substitution: Substitution) -> str:
    return f"${{{substitution.name}}}"


def _substring(value: str, position: str, length: str | None = None) -> str:
    start, count = _integer(position), _integer(length)
    if start is None or (length is not None and count is None):
        return value
    start = max(len(value) + start, 0) if start < 0 else start
    if count is None or start + count >= len(value):
        return value[start:]
    if count < 0:
        raise ValueError(f"a substring of length {count}")
    return value[start : start + count]


def _integer(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[+-]?[0-9]{1,9}", text) else None


def _trim(value: str, pattern: str, *, longest: bool) -> str:
    """Return ``value`` without the longest or shortest prefix that matches ``pattern``."""
    form = _glob(pattern)
    if form is None:
        return value
    lengths = range(len(value), 0, -1) if longest else range(1, len(value) + 1)
    found = next((length for length in lengths if form.fullmatch(value, 0, length)), 0)
    return value[found:]


def _trim_end(value: str, pattern: str, *, longest: bool) -> str:
    return _trim(value[::-1], pattern[::-1], longest=longest)[::-1]


def _glob(pattern: str) -> re.Pattern[str] | None:
    """Return a shell pattern as a regular expression, or None if it is malformed."""
    result, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        found = _CLASS.match(pattern, position)
        if character == "[":
            if found is None:
                return None
            negated = "^" if found["negated"] else ""
            result += f"[{negated}{_escaped_class(found['members'])}]"
            position = found.end()
            continue
        if character == "\\":
            position += 1
            if position == len(pattern):
                return None
            result += re.escape(pattern[position])
        else:
            result += {"*": ".*", "?": "."}.get(character, re.escape(character))
        position += 1
    try:
        return re.compile(result, re.DOTALL)
    except re.error:
        return None


_CLASS = re.compile(r"\[(?P<negated>\^?)(?P<members>(?:[^\]\\-]|-(?!\])|\\.)+)\]", re.DOTALL)


def _escaped_class(members: str) -> str:
    return re.sub(r"([\[&~|^])", r"\\\1", members)


def _replace_prefix(value: str, prefix: str, *replacement: str) -> str:
    if not replacement or not value.startswith(prefix):
        return value
    return replacement[0] + value[len(prefix) :]


def _replace_suffix(value: str, suffix: str, *replacement: str) -> str:
    if not replacement or not value.endswith(suffix):
        return value
    return value[: len(value) - len(suffix)] + replacement[0]


_FUNCTIONS: Mapping[str, _Function] = {
    ",": lambda value: value[:1].lower() + value[1:],
    ",,": str.lower,
    "^": lambda value: value[:1].upper() + value[1:],
    "^^": str.upper,
    "#": lambda value, pattern: _trim(value, pattern, longest=False),
    "##": lambda value, pattern: _trim(value, pattern, longest=True),
    "%": lambda value, pattern: _trim_end(value, pattern, longest=False),
    "%%": lambda value, pattern: _trim_end(value, pattern, longest=True),
    ":": _substring,
    "/": lambda value, old, new="": value.replace(old, new, 1),
    "//": lambda value, old, new="": value.replace(old, new),
    "/#": _replace_prefix,
    "/%": _replace_suffix,
}
"""By operator; others leave the value as it is."""
