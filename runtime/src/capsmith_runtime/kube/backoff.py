"""Exponential backoff with jitter, so that many processes do not retry at the same time."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Delays that start at `base` seconds and double up to `limit`."""

    base: float
    limit: float
    failures: int = 0

    def next(self, at_least: float | None = None) -> float:
        """Return the next delay in seconds, at least the delay that a server requested."""
        delay = min(self.limit, self.base * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return max(delay, at_least or 0.0) * random.uniform(1.0, 1.25)

    def reset(self) -> None:
        """Start again at `base`."""
        self.failures = 0
