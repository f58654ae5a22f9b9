"""Base class of errors that say when to retry."""

from __future__ import annotations


class RetryAfterError(Exception):
    """An expected error: it is logged without a traceback, and retried with back-off."""

    retry_after: float | None = None
    """Minimum delay in seconds until the next attempt; None for the back-off of the queue."""
