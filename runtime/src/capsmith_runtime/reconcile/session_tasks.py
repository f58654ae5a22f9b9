"""Session factories' background tasks, which check readiness and watch the infrastructure."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final

from capsmith_runtime.errors import SessionExpiredError
from capsmith_runtime.kube.clock import Backoff, monotonic
from capsmith_runtime.kube.executor import await_safely, call_safely
from capsmith_runtime.kube.log import describe_error, get_logger
from capsmith_runtime.reconcile.sessions import Changes, ReportedChange, SessionFactory

_log = get_logger("sessions")
_readiness_log = get_logger("readiness")

PERIOD_SECONDS: Final = 10.0
"""Seconds between two calls of a check."""
TIMEOUT_SECONDS: Final = 5.0
"""Seconds that one call of a check may take."""

BASE_DELAY: Final = 1.0
MAX_DELAY: Final = 300.0
"""Maximum back-off in seconds before the factory's ``watch`` is called again."""
STABLE_SECONDS: Final = 60.0
"""Seconds that a call of ``watch`` must last to reset the back-off."""
STOP_SECONDS: Final = 5.0
"""Maximum seconds to wait for a thread to notice that its session has ended."""

WATCH_ENDED: Final = "watch of the infrastructure ended"
"""Logged when ``watch`` returns or raises an exception while its session is open."""
WATCH_RUNS_ON: Final = "watch does not end with its session"
"""Logged when ``watch`` still runs ``STOP_SECONDS`` after its session was closed."""


class SessionWatch:
    """Keeps a factory's ``watch`` running for one session until that session is closed."""

    def __init__(
        self,
        factory: SessionFactory[Any],
        identity: str,
        *,
        enqueue: Callable[[ReportedChange], None],
        expire: Callable[[SessionExpiredError], None],
    ) -> None:
        """Initialise without a running task.

        ``enqueue`` and ``expire`` are called on the event loop; ``expire`` is called when the
        infrastructure has ended the session.
        """
        self._factory = factory
        self._details: dict[str, Any] = {"factory": type(factory).__name__, "identity": identity}
        self._loop = asyncio.get_running_loop()
        self._enqueue = enqueue
        self._expire = expire
        self._changes = Changes(self._report)
        self._task: asyncio.Task[None] | None = None
        self._is_coroutine = inspect.iscoroutinefunction(factory.watch)

    def start(self, session: object) -> None:
        """Start reporting the changes that ``session`` observes."""
        name = f"watch-{self._details['factory']}"
        # An empty context: the session belongs to no object, not even to the one that opened it.
        self._task = asyncio.get_running_loop().create_task(
            self._run(session), name=name, context=contextvars.Context()
        )

    async def stop(self) -> None:
        """Stop the watch, and wait at most ``STOP_SECONDS`` until it no longer uses the session."""
        self._changes.end()
        if self._task is None:
            return
        if self._is_coroutine:
            self._task.cancel()
        _, running = await asyncio.wait({self._task}, timeout=STOP_SECONDS)
        if running:
            self._task.cancel()
            _log.warning(WATCH_RUNS_ON, **self._details)

    def _report(self, change: ReportedChange) -> None:
        self._loop.call_soon_threadsafe(self._enqueue, change)

    async def _run(self, session: object) -> None:
        backoff = Backoff(BASE_DELAY, MAX_DELAY)
        while True:
            began = monotonic()
            try:
                await self._watch(session)
                problem = "it returned while the session was open"
            except SessionExpiredError as error:
                self._changes.end()
                self._expire(error)
                return
            except Exception as error:
                problem = describe_error(error)
            if self._changes.wait(0):
                return
            if monotonic() - began >= STABLE_SECONDS:
                backoff.reset()
            delay = backoff.next()
            _log.warning(
                WATCH_ENDED,
                error=problem,
                retry_seconds=round(delay, 2),
                **self._details,
            )
            await asyncio.sleep(delay)

    async def _watch(self, session: object) -> None:
        if inspect.iscoroutinefunction(self._factory.watch):
            await await_safely("watch", self._factory.watch, (session, self._changes))
            return
        answer = await self._watch_in_thread(session)
        if inspect.isawaitable(answer):
            # The function is asynchronous, but a decorator hides it.
            self._is_coroutine = True
            await await_safely("watch", lambda: answer, ())

    async def _watch_in_thread(self, session: object) -> object:
        # Not one of the executor's threads: it would be busy as long as the session is open.
        ended: asyncio.Future[object] = self._loop.create_future()

        def settle(answer: object, error: Exception | None) -> None:
            if ended.done():
                return
            if error is None:
                ended.set_result(answer)
            else:
                ended.set_exception(error)

        def run() -> None:
            watch: Callable[..., object] = self._factory.watch
            answer, problem = call_safely("watch", watch, (session, self._changes))
            try:
                self._loop.call_soon_threadsafe(settle, answer, problem)
            except RuntimeError:
                # The event loop is closed, so nothing waits for the thread.
                return

        # A daemon: a thread that does not end must not keep a stopping process alive.
        threading.Thread(target=run, name=f"watch-{self._details['identity']}", daemon=True).start()
        return await ended


class PeriodicCheck(ABC):
    """Periodically calls an author function, and reports whether it raised an exception.

    It does not use the threads of the reconcilers' calls: a hanging check must neither block those
    calls nor make the manager unhealthy.
    """

    def __init__(self, name: str, function: Callable[[], Awaitable[None] | None]) -> None:
        self.name = name
        self._function = function
        self._running: asyncio.Future[None] | None = None

    @abstractmethod
    def report(self, problem: str | None) -> None:
        """Process the result of one call: a description of the problem, or None for success."""

    async def run(self) -> None:
        """Call the function every 10 seconds until cancelled."""
        try:
            while True:
                self.report(await self._check())
                await asyncio.sleep(PERIOD_SECONDS)
        finally:
            if self._running is not None:
                self._running.cancel()

    async def _check(self) -> str | None:
        """Return the problem, or None if there is none.

        If the previous call is still running, wait for it instead of calling again.
        """
        if self._running is None:
            self._running = asyncio.ensure_future(self._call())
        await asyncio.wait({self._running}, timeout=TIMEOUT_SECONDS)
        if not self._running.done():
            return f"no answer within {TIMEOUT_SECONDS:g} s"
        finished, self._running = self._running, None
        error = finished.exception()
        return None if error is None else describe_error(error)

    async def _call(self) -> None:
        if inspect.iscoroutinefunction(self._function):
            await await_safely(self.name, self._function, ())
            return
        loop = asyncio.get_running_loop()
        called = loop.run_in_executor(None, call_safely, self.name, self._function, ())
        answer, error = await called
        if error is not None:
            raise error
        if inspect.isawaitable(answer):
            # The function is asynchronous, but a decorator hides it.
            await await_safely(self.name, lambda: answer, ())


class ReadinessCheck(PeriodicCheck):
    """Check that passes if the last call of its function raised no exception."""

    def __init__(self, name: str, function: Callable[[], Awaitable[None] | None]) -> None:
        super().__init__(name, function)
        self._problem: str | None = "not called yet"

    def is_ready(self) -> bool:
        """Return whether the last call succeeded, or False before the first call has finished."""
        return self._problem is None

    def report(self, problem: str | None) -> None:
        """Record the result of a call, and log it if it has changed."""
        if problem == self._problem:
            return
        self._problem = problem
        if problem is None:
            _readiness_log.info("ready", check=self.name)
        else:
            _readiness_log.warning("not ready", check=self.name, error=problem)
