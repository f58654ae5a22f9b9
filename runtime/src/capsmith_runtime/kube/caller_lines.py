"""Queues of reconciles that may not call the author's code yet."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from capsmith_runtime.kube.fifo import LOW_SHARE, PriorityFifo
from capsmith_runtime.kube.requeue import Priority

WAKE_SECONDS: Final = 1.0
"""Seconds after which callers are woken even if no call of their namespace has ended."""


class CallerLine:
    """Queue of waiting callers without duplicates.

    Deletions come first, but every ``LOW_SHARE``-th turn goes to another waiting caller: deletions
    that never succeed must not block the others.
    """

    def __init__(self) -> None:
        self._wakes: dict[Hashable, Callable[[], None]] = {}
        self._deletions: OrderedDict[Hashable, None] = OrderedDict()
        # A caller that has moved to the deletions stays here, and is skipped.
        self._others = PriorityFifo[Hashable]()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._wakes)

    def push(
        self, caller: Hashable, wake: Callable[[], None], priority: Priority, *, deletion: bool
    ) -> None:
        """Append a caller; a caller that is already waiting is not added again, but may move up."""
        self._wakes[caller] = wake
        if deletion:
            self._deletions[caller] = None
        elif caller not in self._deletions:
            self._others.push(caller, priority)

    def pop(self) -> tuple[Hashable, Callable[[], None]]:
        """Remove and return the next caller with its ``wake`` function.

        Raises KeyError if no caller is waiting.
        """
        while True:
            caller = self._next()
            wake = self._wakes.pop(caller, None)
            if wake is not None:
                return caller, wake

    def wake(self) -> None:
        """Remove and wake the next two callers, if there are any, so that each tries again."""
        # Two, because the object of one may be gone.
        for _ in range(min(len(self), 2)):
            self.pop()[1]()

    def _next(self) -> Hashable:
        # Turns count only while other callers wait too, so that a newcomer does not overtake the
        # deletions with a saved-up turn.
        if self._deletions:
            self._turn = (self._turn + 1) % LOW_SHARE if self._others else 0
        if self._deletions and (self._turn or not self._others):
            return self._deletions.popitem(last=False)[0]
        return self._others.pop()[0]


class NamespaceLines:
    """The callers that wait because slow calls of their namespace use all threads that they may.

    They are woken when a call of their namespace ends.  While the namespace may use threads, two of
    them are woken each second as well: its limit depends on the calls of other namespaces, and a
    woken caller may make no call whose end would wake the next one.
    """

    def __init__(self, is_crowded: Callable[[str], bool]) -> None:
        """Initialise without callers.

        ``is_crowded`` returns whether a namespace may use no further thread.
        """
        self._is_crowded = is_crowded
        self._lines: dict[str, CallerLine] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(len(line) for line in self._lines.values())

    def push(
        self,
        namespace: str,
        caller: Hashable,
        wake: Callable[[], None],
        priority: Priority,
        *,
        deletion: bool,
    ) -> None:
        """Append a caller, whose ``wake`` is called once; see :meth:`CallerLine.push`."""
        line = self._lines.setdefault(namespace, CallerLine())
        line.push(caller, wake, priority, deletion=deletion)
        self._schedule()

    async def wait(self, namespace: str) -> None:
        """Wait until a thread may be free for the namespace."""
        woken = asyncio.Event()
        self.push(namespace, woken, woken.set, Priority.NORMAL, deletion=False)
        await woken.wait()

    def wake(self, namespace: str) -> None:
        """Wake two callers of a namespace, unless it may use no further thread."""
        line = self._lines.get(namespace)
        if line is None or self._is_crowded(namespace):
            return
        line.wake()
        if not line:
            del self._lines[namespace]

    def _schedule(self) -> None:
        if self._timer is None and self._lines:
            self._timer = asyncio.get_running_loop().call_later(WAKE_SECONDS, self._wake_all)

    def _wake_all(self) -> None:
        self._timer = None
        for namespace in list(self._lines):
            self.wake(namespace)
        self._schedule()
