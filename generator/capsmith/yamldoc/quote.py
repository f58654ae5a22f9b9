"""Quote user input for messages: short, printable and on one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufdd0-\ufdef"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)
"""Control characters, direction characters and non-characters. Descriptions must not contain
them."""

_LONGEST = 60


def clip(text: str) -> str:
    """Return ``text`` on one line, without control characters and with at most 60 characters."""
    clean = " ".join(UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text).split())
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 3] + "..."


def quote(text: str) -> str:
    """Return ``text`` in backticks, clipped to at most 60 characters."""
    return f"`{clip(text)}`"


def join_names(names: Iterable[str]) -> str:
    """Return quoted names joined as in ``a, b and c``; "`nothing`" if there are none."""
    *most, last = [quote(name) for name in names] or ["nothing"]
    return f"{', '.join(most)} and {last}" if most else last


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a hint that suggests the most similar known word or, if none, lists all words."""
    names = sorted(known)
    near = difflib.get_close_matches(clip(word).lower(), [n.lower() for n in names], n=1)
    if near:
        nearest = next(name for name in names if name.lower() == near[0])
        return f"Did you mean {quote(nearest)}?"
    return f"Use one of: {', '.join(names)}." if names else "Remove it."
