"""An event loop with a virtual clock: scenarios that wait for minutes take milliseconds.

Time jumps to the next timer as soon as only timers are left.  It must not jump while a connection
is open, or while a thread that was started after the loop is running: timeouts would expire too
early.  During that time the clock runs at its real pace.

Before each jump, the loop checks the states that tests wait for, because nothing can change them
before the jump. Checking them in small clock steps would take seconds of CPU time per minute.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from capsmith_runtime.kube.executor import HandlerThread

STALL_SECONDS: Final = 30.0
CHECK_SECONDS: Final = 0.001
"""Seconds between two checks of a state while the clock runs in real time.

It is at most the time that a request to the fake API server takes to arrive, so that no state
between two requests is missed.
"""
_IDLE: Final = "asyncio_"
"""Name prefix of the default executor's threads, which stay when their work is done.

Their work is counted instead.
"""
_CONNECTION: Final = f"({socketserver.ThreadingMixIn.process_request_thread.__name__})"
"""End of the name of a thread in which an HTTP server of a test serves one connection.

It lasts until the client closes the connection.  While it handles a request, the thread or the
open connection of the client holds the clock.
"""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer whenever only timers are pending.

    While a connection is open or a thread is working for the loop, the clock runs in real time.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._others = frozenset(threading.enumerate())
        self._in_executors = 0
        self._checks: list[_Check] = []
        self._checked = 0.0
        selector = _JumpingSelector(self)
        super().__init__(selector)
        # Descriptors registered from now on are not the loop's own pipe.
        selector.watches_outside = True

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self.now

    async def wait_until(self, holds: Callable[[], object], end: float) -> bool:
        """Wait until ``holds`` returns a true value or ``end`` is reached; return whether it did.

        ``holds`` is called immediately, before each jump of the clock, and at the end. While the
        clock runs in real time, it is called every CHECK_SECONDS. It must not schedule anything.
        Its exceptions reach the caller.
        """
        if holds():
            return True
        check = _Check(holds, self.create_future())
        # The timer keeps the clock from jumping beyond the end.
        timer = self.call_at(end, check.end)
        self._checks.append(check)
        try:
            return await check.found or bool(holds())
        finally:
            self._checks.remove(check)
            timer.cancel()

    def check(self) -> bool:
        """Check all awaited states, and return whether any wait has ended."""
        self._checked = self.now
        for check in self._checks:
            check.test()
        return any(check.found.done() for check in self._checks)

    def needs_check(self) -> bool:
        """Return whether the last check of the awaited states was CHECK_SECONDS ago or more."""
        return bool(self._checks) and self.now - self._checked >= CHECK_SECONDS

    def limit_wait(self, timeout: float | None) -> float | None:
        """Return the maximum number of seconds to wait in real time, or None for no limit."""
        if not self._checks:
            return timeout
        return CHECK_SECONDS if timeout is None else min(timeout, CHECK_SECONDS)

    def has_handlers(self) -> bool:
        """Return whether a synchronous handler is running in a thread."""
        return self._in_executors > 0 or any(
            isinstance(thread, HandlerThread) and thread.loop is self
            for thread in threading.enumerate()
        )

    def has_threads(self) -> bool:
        """Return whether a thread that was started after the loop may be working for it."""
        return self._in_executors > 0 or any(
            thread not in self._others and not _may_be_idle(thread)
            for thread in threading.enumerate()
        )

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in a thread; the clock runs in real time until it returns."""
        future = super().run_in_executor(executor, func, *args)
        self._in_executors += 1
        future.add_done_callback(self._leave_executor)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the default executor's threads in real time."""
        self._in_executors += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._in_executors -= 1

    def _leave_executor(self, _: object) -> None:
        self._in_executors -= 1


class _Check:
    """A state that a test waits for."""

    def __init__(self, holds: Callable[[], object], found: asyncio.Future[bool]) -> None:
        self._holds = holds
        self.found = found

    def test(self) -> None:
        """Check the state; end the wait if it holds or its function raises an error."""
        if self.found.done():
            return
        try:
            if self._holds():
                self.found.set_result(True)
        except Exception as error:
            self.found.set_exception(error)

    def end(self) -> None:
        """End the wait because it has taken too long."""
        if not self.found.done():
            self.found.set_result(False)


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop
        self._outside: set[int] = set()
        self._moved = time.monotonic()
        self.watches_outside = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        # A server's socket is always registered: it would keep the clock from ever jumping.
        if self.watches_outside and not _is_listening(key.fd):
            self._outside.add(key.fd)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self._outside.discard(key.fd)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # The order matters: a thread wakes the loop before it ends. So the poll notices a thread
        # that ended before this check, and the loop waits for one that ends later.
        is_waiting = bool(self._outside) or self._loop.has_threads()
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            self._pass_stalled_time()
            return events
        if is_waiting:
            began = time.monotonic()
            events = super().select(self._loop.limit_wait(timeout))
            self._move(time.monotonic() - began)
            if self._loop.needs_check():
                self._loop.check()
            return events
        if self._loop.check():
            return []
        # Nothing outside is at work and no timer is pending, so the loop would wait forever.
        if timeout is None:
            raise RuntimeError("deadlock: everything waits, and no timer is set")
        self._move(timeout)
        return []

    def _move(self, seconds: float) -> None:
        self._loop.now += seconds
        self._moved = time.monotonic()

    def _pass_stalled_time(self) -> None:
        """Let timeouts expire even if a series of callbacks keeps the clock from moving."""
        stalled = time.monotonic() - self._moved
        if stalled > STALL_SECONDS:
            self._move(stalled)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new event loop with a virtual clock, and return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def _may_be_idle(thread: threading.Thread) -> bool:
    """Return whether a thread outlives its work, and something else holds the clock during it."""
    return thread.name.startswith(_IDLE) or thread.name.endswith(_CONNECTION)


def _is_listening(fd: int) -> bool:
    """Return whether a descriptor is a server's socket, which waits for connections, not work."""
    try:
        with socket.socket(fileno=socket.dup(fd)) as found:
            return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False
