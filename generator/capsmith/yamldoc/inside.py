"""Positions inside a scalar: from a place in its text to a place in the source."""

from __future__ import annotations

import re

Position = tuple[int, int]
"""Line and column, from 1."""

_BLOCK = re.compile(r"\|([+-]?[1-9]?[+-]?)[ \t]*(#.*)?")


def find_inside(source: str, start: Position, text: str, place: Position) -> Position | None:
    """Return where in ``source`` a ``place`` in ``text`` is; None if the two differ.

    ``start`` is where the scalar begins in the source.
    """
    lines = source.split("\n")
    if start[0] > len(lines):
        return None
    first = lines[start[0] - 1][start[1] - 1 :]
    if _BLOCK.fullmatch(first.rstrip("\r")):
        return _find_in_block(lines[start[0] :], start[0], text, place)
    opening = 1 if first[:1] in ("'", '"') else 0
    if place[0] > 1 or not first.startswith(text, opening):
        return None
    return start[0], start[1] + opening + place[1] - 1


def _find_in_block(lines: list[str], line: int, text: str, place: Position) -> Position | None:
    """Return the position in a literal block, whose lines are all indented alike."""
    content = text.rstrip("\n").split("\n")
    first = next((number for number, written in enumerate(content) if written), None)
    if first is None or len(lines) < len(content):
        return None
    indent = lines[first].find(content[first])
    written = [row.rstrip("\r")[indent:] for row in lines[: len(content)]]
    if indent < 0 or written != content or place[0] > len(content):
        return None
    return line + place[0], indent + place[1]
