"""A work queue of keys without duplicates; no key is processed twice at the same time.

As in controller-runtime, the queue holds keys and not changes. A worker reads the latest object, so
any number of changes that arrive while a key waits cause only one reconcile. Unlike there, keys of
different namespaces are taken in turn.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import Generic

from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.delayed_keys import DelayedKeys, K
from capsmith_runtime.kube.fifo import PriorityFifo
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import Priority


class QueueClosed(Exception):
    """Raised if the queue is closed because the process is stopping."""


class QueueTimes(Generic[K]):
    """Measures how long keys wait in a queue and how long they are in process, as client-go does.

    The waiting time of a key counts from when it was first added.
    """

    def __init__(self, name: str, metrics: Metrics) -> None:
        self._added: dict[K, float] = {}
        self._taken: dict[K, float] = {}
        self._adds = metrics.queue_adds.labels(name)
        self._retries = metrics.queue_retries.labels(name)
        self._queue_seconds = metrics.queue_seconds.labels(name)
        self._work_seconds = metrics.work_seconds.labels(name)
        metrics.unfinished_work.labels(name).set_function(lambda: sum(self._running()))
        metrics.longest_running.labels(name).set_function(lambda: max(self._running(), default=0.0))

    def note_added(self, key: K) -> None:
        """Record that a key has started to wait; does nothing if it is already waiting."""
        # Changes to a key that is already waiting do not restart its time.
        if key not in self._added:
            self._added[key] = monotonic()
            self._adds.inc()

    def note_taken(self, key: K) -> None:
        """Record that a worker has taken a key."""
        now = monotonic()
        self._taken[key] = now
        self._queue_seconds.observe(now - self._added.pop(key, now))

    def note_done(self, key: K) -> None:
        """Record that a key is no longer in process."""
        began = self._taken.pop(key, None)
        if began is not None:
            self._work_seconds.observe(monotonic() - began)

    def note_retry(self) -> None:
        """Count a key that is added again after a failure."""
        self._retries.inc()

    def forget_waiting(self) -> None:
        """Drop the times of waiting keys that no worker will take, because the queue is closed."""
        self._added.clear()

    def _running(self) -> list[float]:
        now = monotonic()
        return [now - began for began in self._taken.values()]


class WorkQueue(Generic[K]):
    """Keys that wait for a worker; belongs to one event loop and is not thread-safe.

    Keys that are added before the first worker starts come from the initial list of all objects.
    They get low priority, so that later changes do not wait for them.  Pending objects come first
    among them, because they may have been created while no manager was running.
    """

    def __init__(
        self,
        name: str,
        metrics: Metrics,
        *,
        base_delay: float = 0.1,
        max_delay: float = 300.0,
    ) -> None:
        self.name = name
        # Read when metrics are rendered: thousands of keys may be added at a time.
        metrics.queue_depth.labels(name).set_function(self.__len__)
        self._times = QueueTimes[K](name, metrics)
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._ready = PriorityFifo[K]()
        # Keys to process again after their running reconcile.
        self._again: dict[K, Priority] = {}
        self._processing: dict[K, Priority] = {}
        self._delayed = DelayedKeys[K](self.add)
        self._failures: dict[K, int] = {}
        self._wake: deque[asyncio.Future[None]] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._started = False
        self._closed = False

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def has_started(self) -> bool:
        """Return whether a worker has requested a key yet."""
        return self._started

    def add(
        self, key: K, priority: Priority = Priority.NORMAL, *, is_pending: bool = False
    ) -> None:
        """Add a key now, or as soon as its running reconcile has finished.

        A waiting key keeps its position, unless it is added with a higher priority. ``is_pending``
        matters only before the first worker starts.
        """
        if self._closed:
            return
        # A second worker must not get the key: two reconciles of one object could both create its
        # server.  But the change came after the running reconcile may have read the object.
        if key in self._processing:
            if key not in self._again:
                self._times.note_added(key)
            self._again[key] = max(priority, self._again.get(key, priority))
        elif self._started:
            self._push(key, priority)
        else:
            self._times.note_added(key)
            self._ready.push(key, Priority.LOW, is_first=is_pending)

    def add_after(self, key: K, seconds: float, priority: Priority | None = None) -> None:
        """Add a key after `seconds`, or earlier if an earlier time was already requested for it.

        The highest requested priority wins. If ``priority`` is None, the key keeps the priority of
        its running reconcile.
        """
        if self._closed:
            return
        if priority is None:
            priority = self.priority_of(key)
        self._delayed.put(key, seconds, priority)

    def add_rate_limited(self, key: K, *, at_least: float = 0.0) -> float:
        """Add a failed key after exponential back-off with jitter, and return the delay in seconds.

        The delay is at least ``at_least``.
        """
        self._times.note_retry()
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # 2**32 is above any limit; without the bound the power would eventually overflow a float.
        delay = min(self._max_delay, self._base_delay * 2.0 ** min(failures, 32))
        # Jitter only lengthens a delay: `at_least` comes from a Retry-After header, and an earlier
        # request would be rejected again.
        delay = max(delay, at_least) * random.uniform(1.0, 1.25)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset a key's back-off; call this after a reconcile without an error."""
        self._failures.pop(key, None)

    def priority_of(self, key: K) -> Priority:
        """Return the priority of a key's running reconcile, or NORMAL if none is running."""
        return self._processing.get(key, Priority.NORMAL)

    async def get(self) -> K:
        """Wait for the next key and return it; the caller must pass the key to `done`.

        Raises QueueClosed once the queue is closed.
        """
        self._started = True
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
        key, priority = self._ready.pop()
        self._processing[key] = priority
        self._times.note_taken(key)
        self._idle.clear()
        self._delayed.discard(key)  # the new reconcile decides when to run again
        return key

    def done(self, key: K) -> None:
        """Mark a key's reconcile as finished, and queue the key if it was added again.

        No other worker gets the key until this call.
        """
        self._processing.pop(key, None)
        self._times.note_done(key)
        again = self._again.pop(key, None)
        if again is not None:
            self._push(key, again)
        if not self._processing:
            self._idle.set()

    def close(self) -> None:
        """Drop all waiting keys, accept no new ones, and make :meth:`get` raise QueueClosed.

        Does not wait for running reconciles; see :meth:`drained`.
        """
        self._closed = True
        self._delayed.clear()
        self._ready.clear()
        self._again.clear()
        self._times.forget_waiting()
        while self._wake:
            self._wake_one()

    async def drained(self) -> None:
        """Wait until no key is being processed; waiting keys do not count."""
        await self._idle.wait()

    def _push(self, key: K, priority: Priority) -> None:
        before = len(self._ready)
        self._ready.push(key, priority)
        if len(self._ready) == before:
            return
        self._times.note_added(key)
        self._wake_one()

    def _wake_one(self) -> None:
        while self._wake:
            waiter = self._wake.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
