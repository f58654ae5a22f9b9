"""Calls to author code, and each object's waits, read from a manager's log records."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from capsmith.clusters.conditions import JSON, get_mapping
from capsmith.clusters.hiding import hide_in_line

_MAX_CALLS = 40
"""Maximum number of calls and waits kept for each object."""
_MAX_OBJECTS = 20_000
_TEXT = re.compile(
    r"(\S+Z) [A-Z]+ (\S+) "
    r"(call starts|call ends|reconciled|reconcile failed|waiting|starting)(?= |$)(.*)"
)
_VALUE = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S*)')
_INTERRUPTED = "the manager ended"


@dataclass
class AuthorCall:
    """A call to a reconciler method that the author wrote."""

    method: str
    begin: float
    """Start of the call, in seconds since the epoch."""
    seconds: float | None = None
    """Duration in seconds; None while the call is running."""
    result: str = ""
    """Type of the value returned or the exception raised; empty while the call is running."""
    error: str = ""
    """Message of the exception, without secrets; empty if there was none."""
    requeue: float | None = None
    """Seconds until the next reconcile; None if only a change triggers one, or if it is unknown."""


@dataclass(frozen=True)
class Wait:
    """When and why an object began to wait for something, according to its manager's log."""

    begin: float
    reason: str
    message: str


@dataclass
class ObjectHistory:
    """An object's latest waits and latest calls to author code, as the lab's page shows them."""

    calls: deque[AuthorCall] = field(default_factory=lambda: deque(maxlen=_MAX_CALLS))
    waits: deque[Wait] = field(default_factory=lambda: deque(maxlen=_MAX_CALLS))
    revision: int = 0


class CallHistory:
    """Histories by kind and key, built from the lines in managers' logs.

    Not thread-safe: callers must hold a lock.
    """

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], ObjectHistory] = {}
        self._running: set[tuple[str, str]] = set()
        self._revision = 0

    def list_running(self, before: float) -> dict[tuple[str, str], AuthorCall]:
        """Return the running calls that began before a time, by kind and key of their object.

        ``before`` is in seconds since the epoch.
        """
        found = {each: self._objects[each].calls[-1] for each in sorted(self._running)}
        return {each: call for each, call in found.items() if call.begin < before}

    def find(self, kind: str, key: str) -> ObjectHistory | None:
        """Return an object's history, or None. ``key`` has the form ``namespace/name``."""
        return self._objects.get((kind, key))

    def read(self, lines: Iterable[str]) -> None:
        """Add the records in a log's new lines, which must be passed in order."""
        for line in lines:
            record = _parse(line)
            if record is not None:
                self._revision += 1
                self._add(record)

    def _add(self, record: JSON) -> None:
        text, time = record["msg"], record["time"]
        if text == "starting":
            self._interrupt()
            return
        kind = str(record.get("controller") or record.get("kind") or "")
        key = kind, str(record.get("key") or record.get("object") or "")
        history = self._provide(*key)
        history.revision = self._revision
        if text == "call starts":
            history.calls.append(AuthorCall(str(record.get("method")), time))
            self._running.add(key)
        elif text == "waiting":
            words = (hide_in_line(str(record.get(each) or "")) for each in ("reason", "message"))
            history.waits.append(Wait(time, *words))
        elif history.calls:
            self._running.discard(key)
            _complete(history.calls[-1], text, record)

    def _provide(self, kind: str, key: str) -> ObjectHistory:
        found = self._objects.setdefault((kind, key), ObjectHistory())
        while len(self._objects) > _MAX_OBJECTS:
            oldest = next(iter(self._objects))
            del self._objects[oldest]
            self._running.discard(oldest)
        return found

    def _interrupt(self) -> None:
        """End all running calls: another process writes the log from here on."""
        self._running.clear()
        for history in self._objects.values():
            if history.calls and history.calls[-1].seconds is None:
                history.calls[-1].seconds = 0.0
                history.calls[-1].result = _INTERRUPTED
                history.revision = self._revision


def _complete(call: AuthorCall, text: str, record: JSON) -> None:
    if text == "call ends":
        call.seconds = _number(record.get("seconds")) or 0.0
        call.result = str(record.get("result") or "")
    elif text == "reconciled":
        call.requeue = _number(record.get("requeue_seconds"))
    else:
        call.error = hide_in_line(str(record.get("error") or ""))
        call.requeue = _number(record.get("retry_seconds"))


def _parse(line: str) -> JSON | None:
    """Return the values of a record of the runtime with its time; None for all other lines."""
    if line.startswith("{"):
        return _parse_json(line)
    match = _TEXT.match(line)
    if match is None or match[2] not in _LOGGERS[match[3]]:
        return None
    try:
        values = {
            name: json.loads(value) if value.startswith('"') else value
            for name, value in _VALUE.findall(match[4])
        }
        return {**values, "msg": match[3], "time": datetime.fromisoformat(match[1]).timestamp()}
    except ValueError:
        return None


_LOGGERS = {
    "call starts": ("hooks",),
    "call ends": ("hooks",),
    "reconciled": ("controller",),
    "reconcile failed": ("controller",),
    "waiting": ("reconcile",),
    "starting": ("manager",),
}
"""Loggers of the runtime by message. The author's code uses other logger names."""


def _parse_json(line: str) -> JSON | None:
    try:
        record = get_mapping(json.loads(line))
        if record.get("logger") not in _LOGGERS.get(str(record.get("msg")), ()):
            return None
        return {**record, "time": datetime.fromisoformat(str(record.get("ts"))).timestamp()}
    except (ValueError, RecursionError):
        return None


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
