"""The clock that all waiting follows."""

from __future__ import annotations

import asyncio
import time


def monotonic() -> float:
    """Return the time of the running event loop in seconds.

    That is time.monotonic(), except on a loop that has a clock of its own, as in tests.
    """
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
