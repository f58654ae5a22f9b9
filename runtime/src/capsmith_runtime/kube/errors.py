"""Base classes of errors that say when to retry."""

from __future__ import annotations

from collections.abc import Callable

from capsmith_runtime.kube.priority import Priority

Subscribe = Callable[[Callable[[], None], Priority], None]
"""Calls a function once, when the reconcile may be repeated; waiters of high priority first."""


class RetryAfterError(Exception):
    """An expected error: it is logged without a traceback, and retried with back-off."""

    retry_after: float | None = None
    """Minimum delay in seconds until the next attempt; None for the back-off of the queue."""


class DeferredError(Exception):
    """The reconcile must wait before it may go on: no failure, and the back-off stays as it is."""

    def __init__(
        self, message: str, *, seconds: float | None = None, subscribe: Subscribe | None = None
    ) -> None:
        """Repeat the reconcile after ``seconds``, or when ``subscribe`` calls back."""
        super().__init__(message)
        self.seconds = seconds
        self.subscribe = subscribe
