"""Keys that join a work queue later, such as objects that wait for their next resync."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

import msgspec

from capsmith_runtime.kube.requeue import Priority

K = TypeVar("K", bound=Hashable)

_LEAST_DISCARDED: Final = 64
"""Number of discarded entries to keep before they are removed from the heap."""


# Not tracked by the garbage collector: neither a key nor a priority refers to an entry. Entries are
# ordered by time and, if that is the same, by the order in which they were added.
class _Entry(msgspec.Struct, Generic[K], gc=False, order=True):
    due: float
    number: int
    key: K
    priority: Priority


class DelayedKeys(Generic[K]):
    """Calls a function with each key, and its priority, when the key is due.

    One timer of the event loop serves all keys.  A timer for each of them would consist of several
    objects that every full garbage collection visits, and would make the event loop keep thousands
    of cancelled timers of other tasks.
    """

    def __init__(self, add: Callable[[K, Priority], None]) -> None:
        self._add = add
        self._entries: dict[K, _Entry[K]] = {}
        # May contain entries that were replaced or discarded, which are skipped when they are due.
        self._heap: list[_Entry[K]] = []
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None
        # A copy of the caller's context would keep its reconcile's span, and whatever else is in
        # it, as long as the timer runs.
        self._context = contextvars.Context()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, key: K, seconds: float, priority: Priority) -> None:
        """Add a key that is due after `seconds`.

        If the key is already waiting, the earlier time and the higher priority apply.
        """
        due = asyncio.get_running_loop().time() + max(0.0, seconds)
        known = self._entries.get(key)
        if known is not None:
            # A wait that ends soon must not be replaced by a longer one, such as the sync period.
            due, priority = min(due, known.due), max(priority, known.priority)
        self._number += 1
        entry = _Entry(due, self._number, key, priority)
        self._entries[key] = entry
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._entries) + _LEAST_DISCARDED:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
        self._start_timer()

    def discard(self, key: K) -> None:
        """Remove a key, if it is waiting."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove all keys, and cancel the timer."""
        self._entries.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_timer(self) -> None:
        """Start the timer for the first entry, unless one runs that expires no later."""
        if not self._heap:
            return
        due = self._heap[0].due
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(due, self._expire, due, context=self._context)

    def _expire(self, due: float) -> None:
        self._timer = None
        # A timer may expire before its time, by the resolution of the clock.
        now = max(due, asyncio.get_running_loop().time())
        while self._heap and self._heap[0].due <= now:
            entry = heapq.heappop(self._heap)
            if self._entries.get(entry.key) is entry:
                del self._entries[entry.key]
                self._add(entry.key, entry.priority)
        self._start_timer()
