"""Timestamps (RFC 3339) and durations in Kubernetes objects.

Contract v1beta1 and core v1beta1 write durations as strings: ``1h30m``, ``300s``, ``5m0s``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final


def parse_time(text: object) -> datetime | None:
    """Return the time that an RFC 3339 timestamp denotes, or None if the timestamp is invalid."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    # Naive and aware times cannot be compared.
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def format_time(time: datetime) -> str:
    """Return the time as a timestamp in UTC, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
"""Nanoseconds of each unit; Go has two characters for `micro`."""
_LONGEST: Final = 2**63
"""Number of nanoseconds that is too large for Go's int64."""
_MOST_DIGITS: Final = 19
_PART: Final = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?(ns|us|µs|μs|ms|s|m|h)")
# Any user may write a megabyte of digits: the match starts at one place only, and the possessive
# quantifiers never try fewer digits, so that it takes linear time.
_DURATION: Final = re.compile(
    r"\+?(?:0|(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:ns|us|µs|μs|ms|s|m|h))++)"
)


def parse_seconds(text: object) -> int | None:
    """Return the length of a duration in whole seconds, rounded down, or None if it is invalid."""
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        return None
    total = 0
    for whole, fraction, unit in _PART.findall(text):
        digits = whole.lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS:
            return None
        # Further digits do not change the seconds.
        rest = fraction[:_MOST_DIGITS] or "0"
        total += int(digits) * _UNITS[unit] + int(rest) * _UNITS[unit] // 10 ** len(rest)
    return total // _SECOND if total < _LONGEST else None


def format_seconds(seconds: int) -> str:
    """Return seconds as a duration, formatted exactly as Go does, such as ``1h0m0s``."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{hours}h"] if hours else []
    parts += [f"{minutes}m"] if hours or minutes else []
    return "".join((*parts, f"{rest}s"))
