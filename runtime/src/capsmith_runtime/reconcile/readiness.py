"""Readiness checks of authors, which run in the background: a probe waits for none of them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Final

from capsmith_runtime.kube.log import describe_error, get_logger

PERIOD_SECONDS: Final = 10.0
TIMEOUT_SECONDS: Final = 5.0

_log = get_logger("readiness")


class ReadinessCheck:
    """Calls a function periodically; ready while the last call ended without exception.

    It uses no thread of the reconcilers' calls: a check that hangs must not stop those, nor make
    the manager unhealthy.
    """

    def __init__(self, name: str, function: Callable[[], Awaitable[None] | None]) -> None:
        self.name = name
        self._function = function
        self._running: asyncio.Future[None] | None = None
        self._problem: str | None = "not called yet"

    def is_ready(self) -> bool:
        """Return the result of the last call; False before it."""
        return self._problem is None

    async def run(self) -> None:
        """Check until cancelled."""
        try:
            while True:
                self._report(await self._check())
                await asyncio.sleep(PERIOD_SECONDS)
        finally:
            if self._running is not None:
                self._running.cancel()

    async def _check(self) -> str | None:
        """Return the problem, or None; a call that still runs is waited for, not repeated."""
        if self._running is None:
            self._running = asyncio.ensure_future(self._call())
        await asyncio.wait({self._running}, timeout=TIMEOUT_SECONDS)
        if not self._running.done():
            return f"no answer within {TIMEOUT_SECONDS:g} s"
        finished, self._running = self._running, None
        error = finished.exception()
        return None if error is None else describe_error(error)

    async def _call(self) -> None:
        try:
            if inspect.iscoroutinefunction(self._function):
                await self._function()
                return
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(None, self._function)
            if inspect.isawaitable(answer):
                await answer
        except (SystemExit, KeyboardInterrupt, asyncio.CancelledError) as caught:
            task = asyncio.current_task()
            if isinstance(caught, asyncio.CancelledError) and task and task.cancelling():
                raise
            # It would end the event loop, or this task.
            raise RuntimeError(f"{self.name} raised {caught!r}") from caught

    def _report(self, problem: str | None) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        if problem is None:
            _log.info("ready", check=self.name)
        else:
            _log.warning("not ready", check=self.name, error=problem)
