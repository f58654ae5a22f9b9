"""Limit the length of strings from files, so that a report stays readable for any manifest."""

from __future__ import annotations

MAX_VALUE = 600
"""Maximum length of a message, name or path, in characters."""
MAX_LINE = 160
"""Maximum length of a line in an excerpt, in characters."""


def shorten(text: str, limit: int = MAX_VALUE) -> str:
    """Return ``text`` or, if too long, its first ``limit`` characters and the number omitted."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} ... ({len(text) - limit} more characters)"


def shorten_line(text: str) -> str:
    """Return a line from an excerpt, shortened to :data:`MAX_LINE` characters."""
    return shorten(text, MAX_LINE)
