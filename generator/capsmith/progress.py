"""Report the progress of long-running work, item by item, to a console that is listening.

Without a listener, nothing is recorded and the work is not slowed down.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Progress:
    """The running steps, the outermost first.  Another thread may call :meth:`describe`."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []

    def describe(self) -> str:
        """Return a description such as ``reading file 3 of 48``; empty if no step is running."""
        # The list may change while it is read, so a copy is described.
        return ", ".join(step.describe() for step in tuple(self._steps))

    @contextlib.contextmanager
    def begin(self, name: str, total: int) -> Iterator[_Step]:
        """Return a context manager for a step that processes ``total`` items."""
        step = _Step(name, total)
        self._steps.append(step)
        try:
            yield step
        finally:
            # Not the last one: a generator that was not used up may end later than those around it.
            self._steps.remove(step)


class _Step:
    __slots__ = ("name", "number", "total")

    def __init__(self, name: str, total: int) -> None:
        self.name = name
        self.number = 0
        self.total = total

    def describe(self) -> str:
        return f"{self.name} {self.number} of {self.total}"


_LISTENER: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextlib.contextmanager
def listen() -> Iterator[Progress]:
    """Return a context manager that collects the progress of the code inside it."""
    progress = Progress()
    token = _LISTENER.set(progress)
    try:
        yield progress
    finally:
        _LISTENER.reset(token)


def track(name: str, items: Collection[T]) -> Iterator[T]:
    """Yield the items, and report which of them is being processed.

    ``name`` describes the work on a single item, such as ``reading file``.
    """
    progress = _LISTENER.get()
    if progress is None or len(items) < 2:
        yield from items
        return
    with progress.begin(name, len(items)) as step:
        for step.number, item in enumerate(items, 1):
            yield item
