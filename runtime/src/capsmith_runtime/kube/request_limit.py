"""The client-side rate limit for requests to the API server, like the one in client-go."""

from __future__ import annotations

import asyncio
import math
from typing import Final

from capsmith_runtime.kube.clock import monotonic

BURST: Final = 200
"""Number of requests that may be sent in one burst: the default of Cluster API's managers."""


class RequestLimit:
    """A token bucket that serves its callers in order of arrival; belongs to one event loop."""

    def __init__(self, rate: float = 0.0, burst: int = BURST) -> None:
        """Initialise with a full bucket; ``rate`` is in requests per second, 0 means unlimited."""
        self._rate = rate
        self._burst = burst
        self._next = -math.inf
        """Earliest time of the next request; it is in the past while a burst is left."""

    async def wait(self) -> None:
        """Wait until one request may be sent.

        A caller that is cancelled while it waits has used up its turn.
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
