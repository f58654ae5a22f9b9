"""Pieces of Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 100
UP = "../../"
"""From a page to the repository's root."""


def link(text: str, path: str) -> str:
    """Return a link to a path below the repository's root."""
    return f"[{text}]({UP}{path})"


def escape(text: str) -> str:
    """Return plain text that Markdown neither takes for HTML, nor for emphasis, nor for a cell."""
    return re.sub(r"([<*|])", r"\\\1", text)


def anchor(heading: str) -> str:
    """Return the fragment that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def paragraph(text: str, begin: str = "", indent: str = "") -> str:
    """Return text wrapped at spaces; links stay whole, so lines can be longer."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=begin,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def items(texts: Iterable[str]) -> str:
    """Return a list, one item a text, each line ended."""
    return "".join(f"{paragraph(text, begin='- ', indent='  ')}\n" for text in texts)


def table_row(cells: Iterable[object]) -> str:
    """Return one row of a table."""
    return f"| {' | '.join(map(str, cells))} |\n"


def table_head(*titles: str) -> str:
    """Return the head of a table."""
    return table_row(titles) + "|---" * len(titles) + "|\n"
