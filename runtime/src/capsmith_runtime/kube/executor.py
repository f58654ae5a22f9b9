"""Run the author's code, synchronous or asynchronous, with limits on time and concurrency.

A thread cannot be stopped from outside. A synchronous handler that exceeds its time-out is
therefore abandoned but tracked: its key stays in process until the thread ends, so that no object
is reconciled twice at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics

T = TypeVar("T")

_log = get_logger("hooks")
_CANCEL_SECONDS = 1.0


class HookTimeoutError(Exception):
    """A handler timed out and was cancelled."""


class HooksExhaustedError(Exception):
    """All threads are occupied by handlers that hang."""


class StillRunningError(HookTimeoutError):
    """A handler timed out and cannot be stopped."""

    def __init__(self, message: str, running: asyncio.Future[Any]) -> None:
        super().__init__(message)
        self._running = running

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when the handler has ended."""
        self._running.add_done_callback(lambda _: callback())


class HandlerThread(threading.Thread):
    """A thread that runs one synchronous call for an event loop.

    A loop on a virtual clock recognises by this type the calls that need real time.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, target: Callable[[], None], name: str
    ) -> None:
        # A daemon thread per call: a pool's threads would keep a stopping process alive.
        super().__init__(target=target, name=name, daemon=True)
        self.loop = loop


class HandlerExecutor:
    """Call handlers with a time-out in seconds; `threads` limits the synchronous calls."""

    def __init__(self, metrics: Metrics, *, threads: int = 32, timeout: float = 300.0) -> None:
        self._metrics = metrics
        self._threads = threads
        self._slots = asyncio.Semaphore(threads)
        self._timeout = timeout

    async def call(self, hook: Callable[..., T | Awaitable[T]], *args: Any) -> T:
        """Return the handler's result.

        Raises its exception, HookTimeoutError or HooksExhaustedError.
        """
        name = getattr(hook, "__qualname__", repr(hook))
        if inspect.iscoroutinefunction(hook):
            return await self._bounded(name, asyncio.ensure_future(_awaited(name, hook, args)))
        answer = await self._bounded(name, await self._start_thread(name, hook, args))
        if not inspect.isawaitable(answer):
            return answer
        # The handler is asynchronous, but a decorator hides it.
        rest = asyncio.ensure_future(_awaited(name, lambda: answer, ()))
        return await self._bounded(name, rest)

    async def _bounded(self, name: str, running: asyncio.Future[T]) -> T:
        try:
            await asyncio.wait({running}, timeout=self._timeout)
        except asyncio.CancelledError:
            running.cancel()
            raise
        if running.done():
            return running.result()
        return await self._expire(name, running)

    async def _expire(self, name: str, running: asyncio.Future[T]) -> T:
        self._metrics.hook_timeouts.labels(name).inc()
        message = f"{name} did not answer within {self._timeout:g} s"
        if isinstance(running, asyncio.Task):
            running.cancel()
            await asyncio.wait({running}, timeout=_CANCEL_SECONDS)
            if running.done():
                raise HookTimeoutError(message)
        self._metrics.hooks_abandoned.inc()
        running.add_done_callback(lambda ended: self._ended(name, ended))
        _log.error("hook hangs; its object waits until it ends", hook=name)
        raise StillRunningError(message, running)

    def _ended(self, name: str, running: asyncio.Future[Any]) -> None:
        self._metrics.hooks_abandoned.dec()
        error = None if running.cancelled() else running.exception()
        _log.warning("hanging hook has ended", hook=name, error=repr(error) if error else None)

    async def _start_thread(
        self, name: str, hook: Callable[..., T], args: tuple[Any, ...]
    ) -> asyncio.Future[T]:
        try:
            async with asyncio.timeout(self._timeout):
                await self._slots.acquire()
        except TimeoutError:
            raise HooksExhaustedError(
                f"all {self._threads} hook threads are taken: {name}"
            ) from None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def settle(answer: T | None, error: Exception | None) -> None:
            self._slots.release()
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(cast(T, answer))

        def run() -> None:
            outcome = context.run(_outcome, name, hook, args)
            # The loop is closed if the process stops without waiting for this thread.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, *outcome)

        try:
            HandlerThread(loop, run, f"hook-{name}").start()
        except BaseException:
            self._slots.release()
            raise
        return future


async def _awaited(name: str, hook: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> T:
    try:
        return await hook(*args)
    except asyncio.CancelledError as caught:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _harmless(name, caught) from caught
    except (SystemExit, KeyboardInterrupt) as caught:
        raise _harmless(name, caught) from caught


def _outcome(
    name: str, hook: Callable[..., T], args: tuple[Any, ...]
) -> tuple[T | None, Exception | None]:
    try:
        return hook(*args), None
    except BaseException as caught:
        if isinstance(caught, Exception) and not isinstance(caught, StopIteration):
            return None, caught
        return None, _harmless(name, caught)  # no future can hold a StopIteration


def _harmless(name: str, caught: BaseException) -> RuntimeError:
    """Wrap an exception: SystemExit would end the event loop, a cancellation the worker."""
    return RuntimeError(f"{name} raised {caught!r}")
