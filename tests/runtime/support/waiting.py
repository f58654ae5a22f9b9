"""Waiting on the event loop, with a bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


async def eventually(probe: Callable[[], T], timeout: float = 180.0, what: str = "") -> T:
    """Wait until `probe` returns a true value, and return it.

    If the probe raised AssertionError last, the failure includes its message.
    """
    deadline = time.monotonic() + timeout
    while True:
        reason: object = None
        try:
            if answer := probe():
                return answer
        except AssertionError as error:
            reason = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout:g} s: {what or probe}: {reason}")
        await asyncio.sleep(0.01)


@asynccontextmanager
async def running(*work: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Run tasks beside the body and cancel them after it; a failed task fails the test."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result
