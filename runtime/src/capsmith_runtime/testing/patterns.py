"""Compiles the RE2 patterns of CRDs with Python's engine."""

from __future__ import annotations

import re
from typing import Final

_FLAGS: Final = re.compile(r"\(\?([ims]+)\)")
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\]", re.DOTALL)
_NAME: Final = re.compile(r"\[:\^?[a-z]+:\]")
_NAMED: Final = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:ascii:]": r"\x00-\x7f",
    "[:blank:]": r"\t ",
    "[:cntrl:]": r"\x00-\x1f\x7f",
    "[:digit:]": "0-9",
    "[:graph:]": "!-~",
    "[:lower:]": "a-z",
    "[:print:]": " -~",
    "[:punct:]": r"!-/:-@\[-`{-~",
    "[:space:]": r"\t\n\v\f\r ",
    "[:upper:]": "A-Z",
    "[:word:]": "0-9A-Za-z_",
    "[:xdigit:]": "0-9A-Fa-f",
}


def compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""Compile an RE2 pattern; classes such as ``\w`` match ASCII only, as in RE2.

    Flags apply from where they are to the end of their group, and classes in brackets have names
    such as ``[:alpha:]``.  Raises re.error for RE2 that Python cannot express, such as ``\pL``.
    """
    return re.compile(_convert(pattern), re.ASCII)


def _convert(pattern: str) -> str:
    found: list[str] = []
    # The flags that were opened in each group, outermost first.
    opened: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        flags = _FLAGS.match(pattern, at)
        part = flags[0] if flags else _read_part(pattern, at)
        at += len(part)
        if flags:
            opened[-1].append(f"(?{flags[1]}:")
            part = opened[-1][-1]
        elif part == "(":
            opened.append([])
        elif part == ")" and len(opened) > 1:
            part += ")" * len(opened.pop())
        elif part == "|":
            part = ")" * len(opened[-1]) + part + "".join(opened[-1])
        elif part == r"\z" or (part == "$" and not _has_lines(opened)):
            part = r"\Z"
        elif part == "{" and pattern.startswith(",", at):
            part = r"\{"
        elif part.startswith("["):
            part = _convert_class(part)
        found.append(part)
    return "".join(found) + ")" * len(opened[0])


def _has_lines(opened: list[list[str]]) -> bool:
    """Return whether ``$`` also stands for the end of a line, as it always does in Python."""
    return any("m" in flags for group in opened for flags in group)


def _read_part(pattern: str, at: int) -> str:
    """Return the escape, the class in brackets or the character at a position."""
    if pattern[at] == "\\":
        return pattern[at : at + 2]
    bracket = _CLASS.match(pattern, at)
    return pattern[at] if bracket is None else bracket[0]


def _convert_class(part: str) -> str:
    return part[0] + _NAME.sub(_read_name, part[1:])


def _read_name(name: re.Match[str]) -> str:
    if name[0] not in _NAMED:
        raise re.error(f"{name[0]} is not supported")
    return _NAMED[name[0]]
