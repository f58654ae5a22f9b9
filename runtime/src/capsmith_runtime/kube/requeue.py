"""Priorities of reconciles, and an error that postpones a reconcile without counting as a failure.

The client's interface imports this module, so it imports neither metrics nor a client.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum


class Priority(IntEnum):
    """Urgency of a reconcile, which decides when the work queue starts it."""

    LOW = 0
    """No change to the object is known: it comes from an initial list, a resync or shared settings.
    """
    NORMAL = 1
    """The object, or something that it waits for, has changed."""


Subscribe = Callable[[Callable[[], None], Priority], None]
"""Function that registers a callback to be called once, when the reconcile may be retried.

Callbacks with higher priority are called first.
"""


class DeferredError(Exception):
    """Raised if a reconcile must wait; this is not a failure and does not affect the back-off."""

    def __init__(
        self,
        message: str,
        *,
        seconds: float | None = None,
        subscribe: Subscribe | None = None,
        is_throttled: bool = True,
    ) -> None:
        """Repeat the reconcile after ``seconds``, or earlier if ``subscribe`` calls back.

        ``is_throttled`` is False if the reconcile only waits for a free worker.
        """
        super().__init__(message)
        self.is_throttled = is_throttled
        self.seconds = seconds
        self.subscribe = subscribe
