"""When an object is reconciled again: priorities, and errors that set the time.

This module is imported by the interface of the client, so it imports neither metrics nor a client.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum


class Priority(IntEnum):
    """Urgency of a reconcile."""

    LOW = 0
    """Nothing is known to have changed for this object: first list, resync, shared settings."""
    NORMAL = 1
    """The object, or something that it waits for, has changed."""


Subscribe = Callable[[Callable[[], None], Priority], None]
"""Calls a function once, when the reconcile may be repeated; waiters of high priority first."""


class DeferredError(Exception):
    """Raised if a reconcile must wait: not a failure, and the back-off stays unchanged."""

    def __init__(
        self,
        message: str,
        *,
        seconds: float | None = None,
        subscribe: Subscribe | None = None,
        is_throttled: bool = True,
    ) -> None:
        """Repeat the reconcile after ``seconds``, or when ``subscribe`` calls back.

        ``is_throttled`` is False for a reconcile that would otherwise wait for a worker.
        """
        super().__init__(message)
        self.is_throttled = is_throttled
        self.seconds = seconds
        self.subscribe = subscribe
