"""Timestamps (RFC 3339) and durations in Kubernetes objects.

Contract v1beta1 and core v1beta1 write durations as strings: ``1h30m``, ``300s``, ``5m0s``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

# Hours may have one digit, and offsets a day and an hour, as in Go's time.Parse.
_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]++))?"
    r"(?:Z|([+-])([01][0-9]|2[0-4]):([0-5][0-9]|60))"
)
_DAY: Final = timedelta(days=1)


def parse_time(text: object) -> datetime | None:
    """Return the time that an RFC 3339 timestamp denotes, or None if the timestamp is invalid.

    Texts that Go refuses are invalid, because core refuses them in annotations. So are times in the
    year 0, which Python does not have.
    """
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    fraction, sign, hours, minutes = match.groups()[6:]
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    microsecond = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        local = datetime(year, month, day, hour, minute, second, microsecond, UTC)
        if offset < _DAY:  # kept, because the time in UTC may be one that Python does not have
            return local.replace(tzinfo=timezone(-offset if sign == "-" else offset))
        return local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError):
        return None


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
