"""The clock that all waits use, and exponential back-off."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass


def monotonic() -> float:
    """Return the running event loop's time in seconds.

    This is time.monotonic(), unless the event loop has its own clock, as in tests.
    """
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


@dataclass(slots=True)
class Backoff:
    """Exponential back-off: delays start at `base` seconds and double until they reach `limit`."""

    base: float
    limit: float
    failures: int = 0

    def next(self, at_least: float | None = None) -> float:
        """Return the next delay in seconds, and double the one after it.

        The delay has up to 25 % of jitter.  It is never shorter than ``at_least``, the delay that a
        server requested.
        """
        delay = min(self.limit, self.base * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return max(delay, at_least or 0.0) * random.uniform(1.0, 1.25)

    def reset(self) -> None:
        """Restart the delays at `base`."""
        self.failures = 0
