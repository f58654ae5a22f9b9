"""Limits for strings that come from files: a report stays readable whatever a manifest holds."""

from __future__ import annotations

MAX_VALUE = 600
"""Characters of a message, name or path."""
MAX_LINE = 160
"""Characters of a line of an excerpt."""


def shorten(text: str, limit: int = MAX_VALUE) -> str:
    """Return ``text``, or its first ``limit`` characters and how many are left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} ... ({len(text) - limit} more characters)"


def shorten_line(text: str) -> str:
    """Return a line of an excerpt, shortened."""
    return shorten(text, MAX_LINE)
