"""An event loop with a virtual clock: scenarios that wait for minutes take milliseconds.

Time jumps to the next timer as soon as nothing else is left to do.  It must not jump while a
connection is open, or while a thread that was started after the loop is running: timeouts would
expire too early.  During that time the clock runs at its real pace.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from capsmith_runtime.kube.executor import HandlerThread

STALL_SECONDS: Final = 30.0
_IDLE: Final = "asyncio_"
"""Name prefix of the default executor's threads, which stay when their work is done.

Their work is counted instead.
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
        selector = _JumpingSelector(self)
        super().__init__(selector)
        # What is registered from now on is not the loop's own pipe.
        selector.watches_outside = True

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self.now

    def has_handlers(self) -> bool:
        """Return whether a synchronous handler is running in a thread."""
        return self._in_executors > 0 or any(
            isinstance(thread, HandlerThread) and thread.loop is self
            for thread in threading.enumerate()
        )

    def has_threads(self) -> bool:
        """Return whether any thread started after the loop may be working for it."""
        return self._in_executors > 0 or any(
            thread not in self._others and not thread.name.startswith(_IDLE)
            for thread in threading.enumerate()
        )

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in a thread; the clock runs in real time until it ends."""
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
        # In this order: a thread wakes the loop before it ends.  So the poll sees one that ended
        # before this check, and one that ends later is waited for.
        is_waiting = bool(self._outside) or self._loop.has_threads()
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            self._pass_stalled_time()
            return events
        if is_waiting:
            began = time.monotonic()
            events = super().select(timeout)
            self._move(time.monotonic() - began)
            return events
        # Nothing outside is at work and no timer is pending, so the loop would wait forever.
        if timeout is None:
            raise RuntimeError("deadlock: everything waits, and no timer is set")
        self._move(timeout)
        return []

    def _move(self, seconds: float) -> None:
        self._loop.now += seconds
        self._moved = time.monotonic()

    def _pass_stalled_time(self) -> None:
        """Let timeouts expire even if callbacks without any pause keep the clock from moving."""
        stalled = time.monotonic() - self._moved
        if stalled > STALL_SECONDS:
            self._move(stalled)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion on a new virtual clock, and return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def _is_listening(fd: int) -> bool:
    """Return whether a descriptor is a server's socket, which waits for connections, not work."""
    try:
        with socket.socket(fileno=socket.dup(fd)) as found:
            return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False
