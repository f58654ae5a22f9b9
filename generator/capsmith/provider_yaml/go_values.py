"""Texts that Kubernetes parses with Go: durations and times."""

from __future__ import annotations

import re
from datetime import date

_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)T([01]?\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?"
    r"(Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)",
    re.ASCII,
)


def is_duration(text: str) -> bool:
    """Return whether ``time.ParseDuration`` reads ``text``, but for values out of range."""
    return _DURATION.fullmatch(text) is not None


def is_timestamp(text: str) -> bool:
    """Return whether ``text`` is a time with a zone, as in RFC 3339."""
    match = _TIME.fullmatch(text)
    return match is not None and is_date(match[1])


def is_date(text: str) -> bool:
    """Return whether ``text`` is a day such as 2030-01-31; Go knows the year 0 too."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return False
    try:
        # The year 0 is a leap year, as 2000 is.
        date.fromisoformat(("2000" if text.startswith("0000") else text[:4]) + text[4:])
    except ValueError:
        return False
    return True
