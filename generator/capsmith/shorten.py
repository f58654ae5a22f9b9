"""Limit the length of strings from files, so that a report stays readable for any manifest."""

from __future__ import annotations

MAX_VALUE = 600
"""Maximum length of a message, name or path, in characters."""
MAX_LINE = 160
"""Maximum length of a line in an excerpt, in characters."""


def shorten(text: str, limit: int = MAX_VALUE) -> str:
    """Return ``text`` or, if too long, its start and end and the number of characters between.

    The end is kept because a message often quotes a value first and then says what is wrong with
    it.
    """
    if len(text) <= limit:
        return text
    end = limit // 3
    omitted = len(text) - limit
    return f"{text[: limit - end]} ... ({omitted:,} more characters) ... {text[-end:]}"


def shorten_line(text: str) -> str:
    """Return a line from an excerpt, shortened to :data:`MAX_LINE` characters."""
    return shorten(text, MAX_LINE)


def shorten_lines(text: str) -> str:
    """Return ``text`` with each line shortened as by :func:`shorten`."""
    return "".join(map(shorten, text.splitlines(keepends=True)))
