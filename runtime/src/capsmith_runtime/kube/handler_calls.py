"""The calls of handlers that run, with the threads that each of them started.

The lease may be released only when none is left, so a call is not over when its caller is
cancelled: it ends with the last of its threads.  Threads that a handler starts by
`asyncio.to_thread` or `loop.run_in_executor(None, ...)` are known, because they are threads of the
`DaemonThreadPool` that is the event loop's default executor.  Threads of other executors are not.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_current: contextvars.ContextVar[HandlerCall | None] = contextvars.ContextVar(
    "handler_call", default=None
)


class HandlerCall:
    """One call of a handler; it is busy while its handler or one of its threads runs."""

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
        """Report whether the handler or one of its threads runs."""
        return self._busy > 0

    def context(self) -> contextvars.Context:
        """Return a copy of the current context in which started threads belong to this call."""
        context = contextvars.copy_context()
        context.run(_current.set, self)
        return context

    def begin(self) -> None:
        """Count one more thread or task; safe in any thread."""
        with self._lock:
            self._busy += 1
            self._calls.add(self)

    def end(self) -> None:
        """Count one thread or task less; safe in any thread."""
        with self._lock:
            self._busy -= 1
            if self._busy:
                return
        # The loop is closed if the process stops without waiting for this thread.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle)

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when the call has ended, or soon if it has."""
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
    """All calls of one executor that run."""

    def __init__(self) -> None:
        self._running: set[HandlerCall] = set()
        self._changed = asyncio.Event()
        self.was_cancelled = False
        """Whether an asynchronous handler was cancelled; what it leaves behind is unknown."""

    @property
    def names(self) -> list[str]:
        """Return the handlers of the calls that run."""
        return sorted(call.name for call in tuple(self._running))

    @property
    def abandoned(self) -> int:
        """Return how many calls exceeded their time limit and still run."""
        return sum(call.is_abandoned for call in tuple(self._running))

    @property
    def have_ended(self) -> bool:
        """Report whether no handler runs, in any thread, and none was cancelled."""
        return not self._running and not self.was_cancelled

    def has(self, call: HandlerCall) -> bool:
        """Report whether a call has not ended."""
        return call in self._running

    def add(self, call: HandlerCall) -> None:
        """Add a call that has become busy; safe in any thread."""
        self._running.add(call)

    def discard(self, call: HandlerCall) -> None:
        """Remove a call that has ended."""
        self._running.discard(call)
        self._changed.set()

    def abandon(self, call: HandlerCall) -> None:
        """Mark a call that exceeded its time limit: `wait` does not wait for it."""
        call.is_abandoned = True
        self._changed.set()

    async def wait(self) -> None:
        """Wait until all calls have ended or are abandoned."""
        while not all(call.is_abandoned for call in tuple(self._running)):
            self._changed.clear()
            await self._changed.wait()


class DaemonThreadPool(ThreadPoolExecutor):
    """Default executor of an event loop: it knows what runs, and no exit waits for its threads.

    At most `threads` calls of handlers run at the same time.  Calls of the runtime, such as name
    lookups, have no limit: handlers that hang must not block them.
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
            _start(run)
            return future
        call.begin()
        future.add_done_callback(lambda _: call.end())
        with self._guard:
            self._pending.append(run)
            if self._active == self._limit:
                return future
            self._active += 1
        try:
            _start(self._work)
        except BaseException:
            future.cancel()
            with self._guard:
                self._active -= 1
            raise
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse new calls; threads that run are not waited for."""
        self._is_closed = True

    def _work(self) -> None:
        while True:
            with self._guard:
                if not self._pending:
                    self._active -= 1
                    return
                run = self._pending.popleft()
            run()


def _start(target: Callable[[], None]) -> None:
    threading.Thread(target=target, name="executor", daemon=True).start()
