"""How long keys wait in a work queue and are in process, as client-go's queues report it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.metrics import Metrics

K = TypeVar("K", bound=Hashable)


class QueueTimes(Generic[K]):
    """Times of one queue's keys; a key that waits keeps the time at which it was added first."""

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
        """Record that a key begins to wait, unless it waits already."""
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
        """Drop the times of waiting keys, which no worker will take."""
        self._added.clear()

    def _running(self) -> list[float]:
        now = monotonic()
        return [now - began for began in self._taken.values()]
