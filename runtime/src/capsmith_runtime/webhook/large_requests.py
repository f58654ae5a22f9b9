"""Requests whose bodies take so long to read that threads have to do it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES: Final = 16 * 1024
"""Size in bytes from which the body of a request is large.

A user's object of 3 MiB may consist of a million values.  They take seconds to read, during which
the event loop must go on, and hundreds of times their size in memory.
"""


class RequestsBusyError(Exception):
    """Raised if a large request has to wait too long for others."""


class LargeRequests:
    """Admits large requests in order of arrival, while their bodies have ``total`` bytes at most.

    Belongs to one event loop.
    """

    def __init__(self, total: int) -> None:
        self._total = self._left = total
        self._line = asyncio.Lock()
        self._has_ended = asyncio.Event()

    @asynccontextmanager
    async def admit(self, size: int, seconds: float) -> AsyncIterator[None]:
        """Return a context manager that waits until a request of ``size`` bytes may be handled.

        Small requests do not wait. Raises RequestsBusyError after ``seconds``.
        """
        size = min(size, self._total) if size >= LARGE_BYTES else 0
        try:
            async with asyncio.timeout(seconds):
                await self._take(size)
        except TimeoutError:
            raise RequestsBusyError from None
        try:
            yield
        finally:
            self._left += size
            self._has_ended.set()

    async def _take(self, size: int) -> None:
        if not size:
            return
        async with self._line:
            while self._left < size:
                self._has_ended.clear()
                await self._has_ended.wait()
            self._left -= size


async def compute(is_large: bool, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the function's result, which a thread computes if the request is large."""
    if is_large:
        return await asyncio.to_thread(function, *args, **kwargs)
    return function(*args, **kwargs)
