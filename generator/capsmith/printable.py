"""Escape control characters in strings that come from files, names or other programs."""

from __future__ import annotations


def make_printable(text: str) -> str:
    """Return ``text`` with each unprintable character replaced by its Python escape sequence."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
