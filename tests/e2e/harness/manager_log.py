"""Problems that the log of a manager reports."""

from __future__ import annotations

import re
from collections.abc import Iterator

_COMPLAINTS = re.compile(r"\b(403|422) [A-Z]|[Ff]orbidden|Traceback")
_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ")
_END = "the manager ends"
# A lease is lost on a machine that is too busy to renew it; another core requires a restart.
_GOOD_REASON = re.compile(r"LeadershipLost|CoreVersionChangedError")


def complaints(log: str) -> list[str]:
    """Return the lines about refusals and bugs, which a working manager never writes.

    The traceback of an end with a good reason is not included.
    """
    return [
        line
        for entry in _entries(log)
        if not (_END in entry[0] and _GOOD_REASON.search(entry[0]))
        for line in entry
        if _COMPLAINTS.search(line)
    ]


def bad_ends(log: str) -> list[str]:
    """Return the lines about an end that the manager itself caused."""
    ends = [entry[0] for entry in _entries(log) if _END in entry[0]]
    return [line for line in ends if not _GOOD_REASON.search(line)]


def _entries(log: str) -> Iterator[list[str]]:
    """Each line of the manager's with the trace below it."""
    entry: list[str] = []
    for line in log.splitlines():
        if entry and _LINE.match(line):
            yield entry
            entry = []
        entry.append(line)
    if entry:
        yield entry
