"""Timestamps in Kubernetes objects (RFC 3339)."""

from __future__ import annotations

from datetime import UTC, datetime


def parse(text: object) -> datetime | None:
    """Return the time; None for an invalid one."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def format_time(time: datetime) -> str:
    """Return the time in UTC, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
