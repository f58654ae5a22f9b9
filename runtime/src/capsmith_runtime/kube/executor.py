"""Run the author's code, synchronous or asynchronous, with limits on time and concurrency.

A thread cannot be stopped from outside. A handler that exceeds its time-out while one of its
threads runs is therefore abandoned but tracked: its key stays in process until the thread ends, so
that no object is reconciled twice at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.handler_calls import HandlerCall, HandlerCalls
from capsmith_runtime.kube.log import describe_error, get_logger
from capsmith_runtime.kube.metrics import Metrics

T = TypeVar("T")

_log = get_logger("hooks")
_CANCEL_SECONDS = 1.0
EXHAUSTED_SECONDS: Final = 180.0
"""How long all threads may hang before only a restart can help."""


class HookTimeoutError(Exception):
    """A handler timed out and was cancelled."""


class HooksExhaustedError(Exception):
    """All threads are occupied by handlers that hang."""


class StillRunningError(HookTimeoutError):
    """A handler timed out and cannot be stopped."""

    def __init__(self, message: str, call: HandlerCall) -> None:
        super().__init__(message)
        self._call = call

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when the handler has ended."""
        self._call.when_ended(callback)


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
        self.calls = HandlerCalls()
        self._metrics = metrics
        self._threads = threads
        self._slots = asyncio.Semaphore(threads)
        self._timeout = timeout
        self._exhausted_since: float | None = None

    @property
    def is_healthy(self) -> bool:
        """Report whether handlers can run; False once as many as `threads` hang for minutes."""
        since = self._exhausted_since
        return since is None or monotonic() - since < EXHAUSTED_SECONDS

    async def call(self, hook: Callable[..., T | Awaitable[T]], *args: Any) -> T:
        """Return the handler's result.

        Raises its exception, HookTimeoutError or HooksExhaustedError.
        """
        call = HandlerCall(getattr(hook, "__qualname__", repr(hook)), self.calls)
        # It begins with 0: Prometheus does not take a counter that appears for one that rose.
        self._metrics.hook_timeouts.labels(call.name)
        if inspect.iscoroutinefunction(hook):
            return await self._bounded(call, _start_task(call, hook, args))
        answer = await self._bounded(call, await self._start_thread(call, hook, args))
        if not inspect.isawaitable(answer):
            return answer
        # The handler is asynchronous, but a decorator hides it.
        return await self._bounded(call, _start_task(call, lambda: answer, ()))

    async def _bounded(self, call: HandlerCall, running: asyncio.Future[T]) -> T:
        try:
            await asyncio.wait({running}, timeout=self._timeout)
        except asyncio.CancelledError:
            if isinstance(running, asyncio.Task) and not running.done():
                self.calls.was_cancelled = True
            running.cancel()
            raise
        if running.done():
            return running.result()
        return await self._expire(call, running)

    async def _expire(self, call: HandlerCall, running: asyncio.Future[T]) -> T:
        self._metrics.hook_timeouts.labels(call.name).inc()
        message = f"{call.name} did not answer within {self._timeout:g} s"
        if isinstance(running, asyncio.Task):
            running.cancel()
            await asyncio.wait({running}, timeout=_CANCEL_SECONDS)
            if running.done() and not call.is_busy:
                raise HookTimeoutError(message)
        self._metrics.hooks_abandoned.inc()
        self.calls.abandon(call)
        if self._exhausted_since is None and self.calls.abandoned >= self._threads:
            self._exhausted_since = monotonic()
        call.when_ended(lambda: self._ended(call, running))
        _log.error("hook hangs; its object waits until it ends", hook=call.name)
        raise StillRunningError(message, call)

    def _ended(self, call: HandlerCall, running: asyncio.Future[Any]) -> None:
        self._metrics.hooks_abandoned.dec()
        if self.calls.abandoned < self._threads:
            self._exhausted_since = None
        error = None if running.cancelled() else running.exception()
        text = describe_error(error) if error else None
        _log.warning("hanging hook has ended", hook=call.name, error=text)

    async def _start_thread(
        self, call: HandlerCall, hook: Callable[..., T], args: tuple[Any, ...]
    ) -> asyncio.Future[T]:
        try:
            async with asyncio.timeout(self._timeout):
                await self._slots.acquire()
        except TimeoutError:
            raise HooksExhaustedError(
                f"all {self._threads} hook threads are taken: {call.name}"
            ) from None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = call.context()

        def settle(answer: T | None, error: Exception | None) -> None:
            self._slots.release()
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(cast(T, answer))

        def run() -> None:
            outcome = context.run(_outcome, call.name, hook, args)
            # The loop is closed if the process stops without waiting for this thread.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, *outcome)
            call.end()

        call.begin()
        try:
            HandlerThread(loop, run, f"hook-{call.name}").start()
        except BaseException:
            call.end()
            self._slots.release()
            raise
        return future


def handler_of(error: BaseException) -> str:
    """Return the name of the handler that raised an error; empty if none did."""
    cause: BaseException | None = error
    while cause is not None:
        trace = cause.__traceback__
        while trace is not None:
            caller, trace = trace.tb_frame.f_code, trace.tb_next
            if trace is not None and caller in (_awaited.__code__, _outcome.__code__):
                return trace.tb_frame.f_code.co_qualname
        cause = cause.__cause__
    return ""


def _start_task(
    call: HandlerCall, hook: Callable[..., Awaitable[T]], args: tuple[Any, ...]
) -> asyncio.Task[T]:
    call.begin()
    handler = _awaited(call.name, hook, args)
    task = asyncio.get_running_loop().create_task(handler, context=call.context())
    task.add_done_callback(lambda _: call.end())
    return task


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
