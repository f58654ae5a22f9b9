"""Wait in a thread for what runs on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(read: Callable[[], Awaitable[T]], loop: asyncio.AbstractEventLoop | None) -> T:
    """Run a coroutine on the event loop and wait for it in the thread of a synchronous method."""

    async def waited() -> T:
        return await read()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("this blocks the event loop: use the _async method in async code")
    if loop is None:
        return asyncio.run(waited())
    return asyncio.run_coroutine_threadsafe(waited(), loop).result()
