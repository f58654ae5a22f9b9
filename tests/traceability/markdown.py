"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from capsmith.reference.markdown import format_row, wrap_text

UP = "../../"
"""From a page to the repository's root."""


def link(text: str, path: str) -> str:
    """Return a link to a path below the repository's root."""
    return f"[{text}]({UP}{path})"


def escape(text: str) -> str:
    """Return plain text that Markdown neither takes for HTML, nor for emphasis, nor for a cell."""
    return re.sub(r"([<*|])", r"\\\1", text)


def items(texts: Iterable[str]) -> str:
    """Return a list, one item a text, each line ended."""
    return "".join(f"{wrap_text(text, '- ', '  ')}\n" for text in texts)


def table_head(*titles: str) -> str:
    """Return the head of a table."""
    return format_row(titles) + "|---" * len(titles) + "|\n"
