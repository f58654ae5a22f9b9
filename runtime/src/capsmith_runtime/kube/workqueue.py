"""A work queue of keys without duplicates; no key is processed twice at the same time."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from capsmith_runtime.kube.metrics import Metrics

K = TypeVar("K", bound=Hashable)


class QueueClosed(Exception):
    """The queue is closed because the process is stopping."""


class WorkQueue(Generic[K]):
    """Keys that wait for a worker. Lives on one event loop; not thread-safe."""

    def __init__(
        self,
        name: str,
        metrics: Metrics,
        *,
        base_delay: float = 0.1,
        max_delay: float = 300.0,
    ) -> None:
        self.name = name
        self._metrics = metrics
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._wake: deque[asyncio.Future[None]] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K) -> None:
        """Add a key now, or again after its running reconcile."""
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._push(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add a key after `seconds`; the earliest request wins."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        pending = self._timers.get(key)
        if pending is not None:
            if pending.when() <= loop.time() + seconds:
                return
            pending.cancel()
        self._timers[key] = loop.call_later(max(0.0, seconds), self._due, key)

    def add_rate_limited(self, key: K, *, at_least: float = 0.0) -> float:
        """Add a failed key after exponential backoff with jitter; return the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(self._max_delay, self._base_delay * 2.0 ** min(failures, 32))
        delay = max(delay, at_least) * random.uniform(1.0, 1.25)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the backoff of a key."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Return the next key, which must be passed to `done`; raises QueueClosed at shutdown."""
        while not self._ready:
            if self._closed:
                raise QueueClosed
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._wake.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # This waiter may have received the only wake-up: pass it on.
                self._wake_one()
                raise
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        self._idle.clear()
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()  # the new reconcile decides when to run again
        self._report_depth()
        return key

    def done(self, key: K) -> None:
        """Mark the reconcile of a key as finished."""
        self._processing.discard(key)
        if key in self._dirty and not self._closed:
            self._push(key)
        if not self._processing:
            self._idle.set()

    def close(self) -> None:
        """Drop all waiting keys, accept no new ones, and stop the workers."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._ready.clear()
        self._dirty.clear()
        self._report_depth()
        while self._wake:
            self._wake_one()

    async def drained(self) -> None:
        """Wait until no key is being processed."""
        await self._idle.wait()

    def _push(self, key: K) -> None:
        self._ready.append(key)
        self._report_depth()
        self._wake_one()

    def _report_depth(self) -> None:
        self._metrics.queue_depth.labels(self.name).set(len(self._ready))

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _wake_one(self) -> None:
        while self._wake:
            waiter = self._wake.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
