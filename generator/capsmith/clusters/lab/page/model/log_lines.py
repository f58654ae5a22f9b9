"""All components' log lines: the object that a line is about, and its severity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from capsmith.clusters.conditions import JSON
from capsmith.clusters.hiding import hide_in_line
from capsmith.printable import make_printable

_SERVERS = re.compile(r"etcd|apiserver|controllers|workload-.*")
"""Components with many lines that are seldom about a provider."""
_MAX_LINE = 4_000
"""Maximum length of a line, in characters; the rest is not shown."""
_NAME = r"A-Za-z0-9.\-"
_LEVEL = re.compile(
    r"^(?:[IWEF]\d{4}\s|\S+\s+(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\s)|\"level\":\s*\"(\w+)\""
)
_TIME = re.compile(
    r"(?:^|\"(?:ts|time|timestamp)\":\s*\")"
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
)
_KLOG_TIME = re.compile(r"[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)")
_CONTINUED = re.compile(r"\s|Traceback |[\w.]+(?:Error|Exception|Refused)\b")
_LEVELS = {"E": "error", "F": "error", "C": "error", "W": "warning"}


@dataclass(frozen=True)
class LogFilter:
    """Selects the log lines to show, by component and by object."""

    component: str = ""
    """Name of the only component to show; empty for all except Kubernetes' own servers."""
    name: str = ""
    """Name of an object that lines must mention; empty to select all lines."""

    def select(self, component: str, lines: list[str], *, is_shown: bool = False) -> list[str]:
        """Return the lines of a component's log that the filter selects.

        A traceback's lines are selected if the line before them is. ``is_shown`` is whether the
        line before the first one was selected.
        """
        if component != self.component and (self.component or _SERVERS.fullmatch(component)):
            return []
        if not self.name:
            return lines
        selected = []
        for line in lines:
            if not _CONTINUED.match(line):
                is_shown = is_about(line, self.name)
            if is_shown:
                selected.append(line)
        return selected


def is_about(line: str, name: str) -> bool:
    """Return whether a line contains ``name``, and not just as part of a longer name.

    In both of the managers' log formats and in klog's, names are delimited by quotes, slashes,
    ``=`` and spaces.
    """
    if name not in line:  # cheap: most lines are about something else
        return False
    return re.search(rf"(?<![{_NAME}]){re.escape(name)}(?![{_NAME}])", line) is not None


def get_level(line: str) -> str:
    """Return a log line's severity: ``error``, ``warning``, or an empty string for any other."""
    match = _LEVEL.search(line[:200])
    if match is None:
        return ""
    word = match[1] or match[0].split()[-1] if match[0][:1] not in "IWEF" else match[0][0]
    return _LEVELS.get(word[:1].upper(), "")


def get_time(line: str, now: datetime) -> float | None:
    """Return the time at the start of a line in seconds since the epoch, or None if it has none.

    Times without a zone are local. klog's times have no year: the result is the latest such time
    that is at most a day after ``now``, which is a local time without a zone.
    """
    try:
        klog = _KLOG_TIME.match(line)
        if klog is not None:
            time = datetime.fromisoformat(f"{now.year}-{klog[1]}-{klog[2]}T{klog[3]}")
            is_future = time > now + timedelta(days=1)
            return (time.replace(year=now.year - 1) if is_future else time).timestamp()
        match = _TIME.search(line[:200])
        return datetime.fromisoformat(match[1]).timestamp() if match is not None else None
    except (ValueError, OverflowError):
        return None


def merge_lines(logs: list[tuple[str, list[str]]], now: datetime) -> list[tuple[str, str]]:
    """Return all components' lines ordered by time, as tuples (component, line).

    Lines from the same component stay in order.  A line without a time stays after the line before
    it, and comes first if there is none.  ``now`` is described at :func:`get_time`.
    """
    timed = [each for name, lines in logs for each in _add_times(name, lines, now)]
    return [(name, line) for _, name, line in sorted(timed, key=lambda each: each[0])]


def _add_times(name: str, lines: list[str], now: datetime) -> Iterator[tuple[float, str, str]]:
    latest = float("-inf")
    for line in lines:
        latest = max(latest, get_time(line, now) or latest)
        yield latest, name, line


def describe_line(component: str, line: str) -> JSON:
    """Return a line as JSON data, with control characters escaped and secrets hidden."""
    text = line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]} … cut"
    text = make_printable(hide_in_line(text).replace("\t", "    "))
    return {"component": component, "level": get_level(line), "text": text}
