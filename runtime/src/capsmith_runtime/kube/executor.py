"""Run the author's code, synchronous or asynchronous, with limits on time and concurrency.

A thread cannot be stopped from outside. A handler that exceeds its time-out while one of its
threads runs is therefore abandoned but tracked: its key stays in process until the thread ends, so
that no object is reconciled twice at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, ParamSpec, TypeVar, cast

from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.log import describe_error, get_logger
from capsmith_runtime.kube.metrics import Metrics

P = ParamSpec("P")
T = TypeVar("T")

# The lease may be released only when no call is left, so a call is not over when its caller is
# cancelled: it ends with the last of its threads.  Threads that a handler starts by
# `asyncio.to_thread` or `loop.run_in_executor(None, ...)` are known, because they are threads of
# the `DaemonThreadPool` that is the event loop's default executor.  Threads of other executors are
# not.
_current: contextvars.ContextVar[HandlerCall | None] = contextvars.ContextVar(
    "handler_call", default=None
)


class HandlerCall:
    """One call of a handler, which is busy while the handler or one of its threads runs."""

    def __init__(self, name: str, calls: HandlerCalls) -> None:
        self.name = name
        self.is_abandoned = False
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._busy = 0
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_busy(self) -> bool:
        """Return whether the handler or one of its threads runs."""
        return self._busy > 0

    def context(self) -> contextvars.Context:
        """Return a copy of the current context in which new threads belong to this call."""
        context = contextvars.copy_context()
        context.run(_current.set, self)
        return context

    def begin(self) -> None:
        """Count one more thread or task of this call; safe in any thread."""
        with self._lock:
            self._busy += 1
            self._calls.add(self)

    def end(self) -> None:
        """Count one thread or task less; the last one ends the call.  Safe in any thread."""
        with self._lock:
            self._busy -= 1
            if self._busy:
                return
        # The loop is closed if the process stops without waiting for this thread.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle)

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when the call ends, or soon if it has ended."""
        if self._calls.has(self):
            self._callbacks.append(callback)
        else:
            self._loop.call_soon(callback)

    def _settle(self) -> None:
        with self._lock:
            if self._busy:
                return
            self._calls.discard(self)
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class HandlerCalls:
    """The calls of one executor that have not ended."""

    def __init__(self) -> None:
        self._running: set[HandlerCall] = set()
        self._changed = asyncio.Event()
        self.was_cancelled = False
        """Whether an asynchronous handler was cancelled; what it leaves behind is unknown."""

    @property
    def names(self) -> list[str]:
        """Return the names of the handlers that run."""
        # Other threads add calls: `tuple` copies the set in one step of the interpreter, while a
        # loop over the set itself could raise RuntimeError.
        return sorted(call.name for call in tuple(self._running))

    @property
    def abandoned(self) -> int:
        """Return how many calls have exceeded their time limit and still run."""
        return sum(call.is_abandoned for call in tuple(self._running))

    @property
    def have_ended(self) -> bool:
        """Return whether no handler runs in any thread, and none was cancelled."""
        return not self._running and not self.was_cancelled

    def has(self, call: HandlerCall) -> bool:
        """Return whether a call has not ended yet."""
        return call in self._running

    def add(self, call: HandlerCall) -> None:
        """Add a call that has become busy; safe in any thread."""
        self._running.add(call)

    def discard(self, call: HandlerCall) -> None:
        """Remove a call that has ended."""
        self._running.discard(call)
        self._changed.set()

    def abandon(self, call: HandlerCall) -> None:
        """Mark a call that exceeded its time limit, so that `wait` does not wait for it."""
        call.is_abandoned = True
        self._changed.set()

    async def wait(self) -> None:
        """Wait until all calls have ended or are abandoned."""
        while not all(call.is_abandoned for call in tuple(self._running)):
            self._changed.clear()
            await self._changed.wait()


class DaemonThreadPool(ThreadPoolExecutor):
    """Default executor of an event loop: it tracks calls, and no exit waits for its threads.

    At most `threads` calls of handlers run at the same time.  Calls of the runtime, such as name
    lookups, have no limit, because handlers that hang must not block them.
    """

    def __init__(self, threads: int) -> None:
        # The base class starts threads in `submit` only, which this class replaces.
        super().__init__(threads)
        self._limit = threads
        self._guard = threading.Lock()
        self._active = 0
        self._pending: deque[Callable[[], None]] = deque()
        self._is_closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a thread; raise RuntimeError after `shutdown`."""
        if self._is_closed:
            raise RuntimeError("cannot start a thread: the event loop is closing")
        future: Future[T] = Future()
        call = _current.get()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        if call is None:
            _start_daemon(run)
            return future
        call.begin()
        # A callback instead of the end of `run`, which never runs if the future is cancelled first.
        future.add_done_callback(lambda _: call.end())
        with self._guard:
            self._pending.append(run)
            if self._active == self._limit:
                return future
            self._active += 1
        try:
            _start_daemon(self._work)
        except BaseException:
            future.cancel()
            with self._guard:
                self._active -= 1
            raise
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse new calls; do not wait for threads that run."""
        # asyncio.run calls this with wait=True; joining a thread that hangs would keep the process
        # and its lease alive.
        self._is_closed = True

    def _work(self) -> None:
        while True:
            with self._guard:
                if not self._pending:
                    self._active -= 1
                    return
                run = self._pending.popleft()
            run()


def _start_daemon(target: Callable[[], None]) -> None:
    threading.Thread(target=target, name="executor", daemon=True).start()


_log = get_logger("hooks")
_CANCEL_SECONDS = 1.0
EXHAUSTED_SECONDS: Final = 180.0
"""How long all threads may hang before only a restart can help."""


class HookTimeoutError(Exception):
    """Raised if a handler timed out and was cancelled."""


class HooksExhaustedError(Exception):
    """Raised if all threads are occupied by handlers that hang."""


class StillRunningError(HookTimeoutError):
    """Raised if a handler timed out and cannot be stopped."""

    def __init__(self, message: str, call: HandlerCall) -> None:
        super().__init__(message)
        self._call = call

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when the handler ends."""
        self._call.when_ended(callback)


class HandlerThread(threading.Thread):
    """A thread that runs one synchronous call for an event loop.

    By this type, an event loop with a virtual clock recognises the calls that need real time.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, target: Callable[[], None], name: str
    ) -> None:
        # A daemon thread per call: a pool's threads would keep a stopping process alive.
        super().__init__(target=target, name=name, daemon=True)
        self.loop = loop


class HandlerExecutor:
    """Calls handlers with a time-out in seconds; `threads` limits concurrent synchronous calls."""

    def __init__(self, metrics: Metrics, *, threads: int = 32, timeout: float = 300.0) -> None:
        self.calls = HandlerCalls()
        self._metrics = metrics
        self._threads = threads
        self._slots = asyncio.Semaphore(threads)
        self._timeout = timeout
        self._exhausted_since: float | None = None

    @property
    def is_healthy(self) -> bool:
        """Return whether handlers can run: False if all `threads` have hung for minutes."""
        since = self._exhausted_since
        return since is None or monotonic() - since < EXHAUSTED_SECONDS

    async def call(self, hook: Callable[..., T | Awaitable[T]], *args: Any) -> T:
        """Call a handler and return its result.

        Raises the handler's exception, HookTimeoutError, StillRunningError or HooksExhaustedError.
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
            # A coroutine may suppress the cancellation, and threads that it started with
            # asyncio.to_thread are not cancelled at all.
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
        # A new thread starts with an empty context: the handler would lose all context variables,
        # such as those of tracing libraries.
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
    """Return the name of the handler that raised an error; empty if no handler did."""
    cause: BaseException | None = error
    while cause is not None:
        trace = cause.__traceback__
        while trace is not None:
            # The frame below one of the two callers of handlers is the handler's, however deep in
            # an SDK the error was raised.
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


_TRACEBACK_SECONDS: Final = 60.0


class TracebackLimiter:
    """Allows one traceback a minute for each handler and type of exception.

    During an outage every object fails with the same error.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, type[BaseException]], float] = {}

    def of(self, error: BaseException) -> BaseException | None:
        """Return the value for `exc_info`: the error, or None if its traceback was just logged."""
        key, now = (handler_of(error), type(error)), self._clock()
        if now - self._logged.get(key, -_TRACEBACK_SECONDS) < _TRACEBACK_SECONDS:
            return None
        self._logged[key] = now
        return error
