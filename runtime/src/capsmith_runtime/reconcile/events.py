"""Kubernetes events that authors record about a scope's object."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Literal, NamedTuple

from capsmith_runtime.errors import check_reason
from capsmith_runtime.kube.client import JSON

if TYPE_CHECKING:  # it imports the library of metrics, which authors' code need not load
    from capsmith_runtime.kube.events import EventRecorder

EventType = Literal["Normal", "Warning"]


class RecordedEvent(NamedTuple):
    """A Kubernetes event that an author's reconciler has recorded about its object."""

    type: EventType
    reason: str
    message: str


class Events:
    """Records events about an object without waiting for the API server.  Thread-safe.

    Some events are dropped: repetitions within 10 minutes, and events above the rate limit.
    """

    recorded: list[RecordedEvent]
    """All events recorded in this call, for unit tests."""

    def __init__(self) -> None:
        self.recorded = []
        self._target: tuple[EventRecorder, JSON, asyncio.AbstractEventLoop] | None = None

    def normal(self, reason: str, message: str) -> None:
        """Record an event of type Normal, which may be dropped.

        Raises ValueError if ``reason`` is not in CamelCase.
        """
        self._record(RecordedEvent("Normal", reason, message))

    def warning(self, reason: str, message: str) -> None:
        """Record an event of type Warning, which may be dropped.

        Raises ValueError if ``reason`` is not in CamelCase.
        """
        self._record(RecordedEvent("Warning", reason, message))

    def _record(self, event: RecordedEvent) -> None:
        check_reason(event.reason)
        self.recorded.append(event)
        if self._target is None:
            return
        recorder, obj, loop = self._target
        # The loop is closed if the process stops without waiting for the author's thread.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(recorder.record, obj, *event)


def send_events(scope: object, recorder: EventRecorder, obj: JSON) -> None:
    """Send a scope's events from now on.  Call this before the author's code gets the scope."""
    events = getattr(scope, "events", None)
    if isinstance(events, Events):
        events._target = recorder, obj, asyncio.get_running_loop()
