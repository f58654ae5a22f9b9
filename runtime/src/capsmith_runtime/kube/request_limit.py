"""The client-side limit of requests to the API server, as client-go has it."""

from __future__ import annotations

import asyncio
import math
from typing import Final

from capsmith_runtime.kube.clock import monotonic

BURST: Final = 200
"""Default of Cluster API's managers."""


class RequestLimit:
    """A token bucket whose callers are served in their order; belongs to one event loop."""

    def __init__(self, rate: float = 0.0, burst: int = BURST) -> None:
        """Initialise with a full bucket; a ``rate`` of 0 requests per second is no limit."""
        self._rate = rate
        self._burst = burst
        self._next = -math.inf
        """Earliest time of the next request; it is in the past while a burst is left."""

    async def wait(self) -> None:
        """Wait for the turn of one request.

        A caller that is cancelled has used its turn.
        """
        if not self._rate:
            return
        now = monotonic()
        interval = 1.0 / self._rate
        # Each request moves the time of the next one. A full bucket has saved `burst`
        # intervals at most.
        self._next = max(self._next, now - self._burst * interval) + interval
        if self._next > now:
            await asyncio.sleep(self._next - now)
