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


_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_MOST_DIGITS: Final = 19
"""Maximum number of digits in a duration: Go counts its nanoseconds in an int64."""
_PART: Final = re.compile(r"([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(ns|us|µs|ms|s|m|h)")
# Any user may write a megabyte of digits: the match starts at one place only, and the possessive
# quantifiers never try fewer digits, so that it takes linear time.
_DURATION: Final = re.compile(f"(?:{_PART.pattern})++")


def parse_seconds(text: object) -> int | None:
    """Return the length of a duration in whole seconds, rounded down, or None if it is invalid."""
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        return None
    parts = _PART.findall(text)
    if any(len(number.partition(".")[0]) > _MOST_DIGITS for number, _ in parts):
        return None
    return int(sum(float(number) * _UNITS[unit] for number, unit in parts))


def format_seconds(seconds: int) -> str:
    """Return seconds as a duration, formatted exactly as Go does, such as ``1h0m0s``."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{hours}h"] if hours else []
    parts += [f"{minutes}m"] if hours or minutes else []
    return "".join((*parts, f"{rest}s"))
