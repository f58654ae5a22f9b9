"""An event loop on which time passes only while nothing else happens.

Hours take no time, and moments are exact. Not for threads or sockets.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everything waits, and nothing will ever happen")
            self.now += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time` is the selector's."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def virtually(test: Coroutine[Any, Any, T]) -> T:
    """Run to the end; waiting for what cannot come fails at once."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(test)
