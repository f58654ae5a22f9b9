"""Make control characters visible in strings that come from files, names or other programs."""

from __future__ import annotations


def make_printable(text: str) -> str:
    """Return ``text`` with control characters, which a file name may contain, made visible."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
