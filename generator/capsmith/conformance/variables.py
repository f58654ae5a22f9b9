"""``${VARIABLES}`` in what clusterctl reads, with the syntax and the oddities of its envsubst.

Pure text to data.  The forms are those of section "Variables" of the clusterctl contract.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGN = re.compile(r":=|:-|=")


class Trouble(StrEnum):
    """The problem with a variable."""

    SYNTAX = "syntax"
    """clusterctl refuses the whole file."""
    NESTED = "nested"
    """A default with a variable in it: the result is empty."""
    EMPTY = "empty"
    """``${A:=}``: no default, so the variable is required."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable ``${…}`` in a text."""

    text: str
    name: str
    default: str | None
    """None: there is none, so the variable is required."""
    line: int
    """From 1."""
    commented: bool
    """Whether it is in a YAML comment, where clusterctl replaces it as well."""
    trouble: Trouble | None = None


def scan(text: str) -> tuple[Variable, ...]:
    """Return the variables of a text, in order."""
    return tuple(
        variable
        for number, line in enumerate(text.split("\n"), start=1)
        if "${" in line
        for variable, _ in _of_line(line, number)
    )


def with_defaults(text: str) -> str:
    """Replace the variables of ``text`` by their defaults, as clusterctl does if none is set."""
    if "$" not in text:
        return text
    return "\n".join(_filled(line, number) for number, line in enumerate(text.split("\n"), 1))


def _filled(line: str, number: int) -> str:
    result, position = "", 0
    for variable, start in _of_line(line, number):
        result += line[position:start].replace("$$", "$")
        usable = variable.default is not None and variable.trouble is not Trouble.NESTED
        result += (variable.default or "").strip('"') if usable else variable.text
        position = start + len(variable.text)
    return result + line[position:].replace("$$", "$")


def _of_line(line: str, number: int) -> list[tuple[Variable, int]]:
    """Return the variables of one line and the columns where they begin."""
    comment = _comment_start(line)
    found: list[tuple[Variable, int]] = []
    position = line.find("${")
    while position >= 0:
        if _escaped(line, position):
            position = line.find("${", position + 2)
            continue
        variable = _read(line, position, number, 0 <= comment < position)
        found.append((variable, position))
        position = line.find("${", position + len(variable.text))
    return found


def _escaped(line: str, position: int) -> bool:
    """Return whether an odd number of dollars stands before: ``$${A}`` is the text ``${A}``."""
    before = line[:position]
    return (len(before) - len(before.rstrip("$"))) % 2 == 1


def _read(line: str, start: int, number: int, commented: bool) -> Variable:
    end = _closing(line, start)
    text = line[start : end + 1] if end >= 0 else line[start:]
    inner = text[2:-1].strip() if end >= 0 else ""
    match = _NAME.match(inner)
    name = match.group() if match else ""
    rest = inner[len(name) :].strip() if name else inner
    assign = _ASSIGN.match(rest)
    default, trouble = None, None
    if not name or (rest and not assign):
        trouble = Trouble.SYNTAX
    elif assign:
        default = rest[assign.end() :]
        if "${" in default:
            trouble = Trouble.NESTED
        elif not default:
            default, trouble = None, Trouble.EMPTY
    return Variable(text, name, default, number, commented, trouble)


def _closing(line: str, start: int) -> int:
    depth = 0
    for position in range(start, len(line)):
        if line.startswith("${", position):
            depth += 1
        elif line[position] == "}":
            depth -= 1
            if depth == 0:
                return position
    return -1


def _comment_start(line: str) -> int:
    """Return the column of the comment of a YAML line, or -1; quotes are honoured."""
    quote = ""
    for position, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"" and (position == 0 or line[position - 1] in " \t[{,:="):
            quote = character
        elif character == "#" and (position == 0 or line[position - 1] in " \t"):
            return position
    return -1
