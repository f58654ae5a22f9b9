"""Sessions and rate limits that the kinds with the same session factory share."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, NamedTuple

from capsmith_runtime.errors import ReconcileError, SessionError
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.log import describe_error, get_logger
from capsmith_runtime.kube.requeue import Priority
from capsmith_runtime.kube.workqueue import LOW_SHARE, PriorityFifo
from capsmith_runtime.reconcile.sessions import Credentials, SessionFactory, qualified_identity

_log = get_logger("sessions")

REASON_SESSION_NOT_OPENED: Final = "SessionNotOpened"
BASE_DELAY: Final = 1.0
MAX_DELAY: Final = 300.0
"""Limits in seconds of the back-off after a session could not be opened."""


class Session:
    """The session of one identity, with one version of its credentials."""

    def __init__(self, credentials: Credentials, failures: int) -> None:
        self.credentials = credentials
        self.failures = failures
        """How often it could not be opened, without a success."""
        self.retry_at = 0.0
        self.users = 0
        self.is_retired = False
        self.opening: asyncio.Task[Any]
        self.idle_timer: asyncio.TimerHandle | None = None

    @property
    def value(self) -> Any:
        """Return the value that the factory opened."""
        return self.opening.result()

    def stop_idle_timer(self) -> None:
        """Keep the session open even if no call uses it."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
            self.idle_timer = None


class SessionPool:
    """Opens, shares and closes the sessions of one factory, on one event loop."""

    def __init__(self, factory: SessionFactory[Any], executor: HandlerExecutor) -> None:
        self.factory = factory
        self._name = type(factory).__name__
        self._executor = executor
        self._sessions: dict[str, Session] = {}
        self._closings: set[asyncio.Task[None]] = set()

    def check(self, credentials: Credentials) -> None:
        """Raise SessionError if these credentials failed and may not be tried again yet."""
        session = self._sessions.get(qualified_identity(credentials))
        if session is not None and session.credentials == credentials and _has_failed(session):
            left = session.retry_at - monotonic()
            if left > 0:
                raise _copy(session.opening.exception(), left)

    async def acquire(self, credentials: Credentials) -> Session:
        """Return the session of an identity; pass it to `release` afterwards.

        Concurrent callers wait for the one that opens the session.  Raises SessionError if that
        fails.
        """
        self.check(credentials)
        session = self._current(credentials)
        session.stop_idle_timer()
        session.users += 1
        try:
            # A caller that is cancelled must not cancel it for the others.
            await asyncio.shield(session.opening)
        except BaseException as error:
            self.release(session)
            if isinstance(error, SessionError):
                raise _copy(error, error.retry_after or 0.0) from error
            raise
        return session

    def release(self, session: Session) -> None:
        """End one use of a session; the last use of a retired session closes it."""
        session.users -= 1
        if session.users:
            return
        if session.is_retired:
            self._close(session)
        # A failed session stays in the pool, as it knows when the next attempt is due.
        elif not _has_failed(session):
            loop, timeout = asyncio.get_running_loop(), self.factory.idle_timeout
            session.stop_idle_timer()
            session.idle_timer = loop.call_later(timeout, self._retire, session)

    async def close(self) -> None:
        """Close all sessions, except sessions that calls still use."""
        for session in list(self._sessions.values()):
            self._retire(session)
        if self._closings:
            await asyncio.wait(self._closings)

    def _current(self, credentials: Credentials) -> Session:
        session = self._sessions.get(qualified_identity(credentials))
        failures = 0
        if session is not None:
            is_same = session.credentials == credentials
            if is_same and not _has_failed(session):
                return session
            # Other credentials are probably the correction, so they are tried without the back-off
            # of the old ones.
            failures = session.failures if is_same else 0
            self._retire(session)
        session = Session(credentials, failures)
        session.opening = asyncio.create_task(self._open(session), name=f"open-{self._name}")
        # Every user may be cancelled before it gets the exception.
        session.opening.add_done_callback(_has_failed_task)
        self._sessions[qualified_identity(credentials)] = session
        return session

    async def _open(self, session: Session) -> Any:
        identity = qualified_identity(session.credentials)
        try:
            opened = await self._executor.call(self.factory.open, session.credentials)
        except Exception as error:
            session.failures += 1
            delay = min(MAX_DELAY, BASE_DELAY * 2.0 ** min(session.failures - 1, 32))
            delay *= random.uniform(1.0, 1.25)
            if isinstance(error, ReconcileError):
                delay = max(delay, error.retry_after or 0.0)
            session.retry_at = monotonic() + delay
            failure = _failure(error, delay)
            _log.warning(
                "cannot open the session",
                factory=self._name,
                identity=identity,
                error=str(failure),
                retry_seconds=round(delay, 2),
            )
            raise failure from error
        session.failures = 0
        _log.info("session is open", factory=self._name, identity=identity)
        return opened

    def _retire(self, session: Session) -> None:
        """Give the session to no further caller, and close it when nothing uses it."""
        session.stop_idle_timer()
        session.is_retired = True
        if self._sessions.get(qualified_identity(session.credentials)) is session:
            del self._sessions[qualified_identity(session.credentials)]
        if not session.users:
            self._close(session)

    def _close(self, session: Session) -> None:
        closing = asyncio.create_task(self._closed(session), name=f"close-{self._name}")
        self._closings.add(closing)
        closing.add_done_callback(self._closings.discard)

    async def _closed(self, session: Session) -> None:
        details: dict[str, Any] = {
            "factory": self._name,
            "identity": qualified_identity(session.credentials),
        }
        # A session can be retired while it is being opened; what it acquires then must still be
        # released.
        await asyncio.wait({session.opening})
        if _has_failed(session):
            return
        try:
            await self._executor.call(self.factory.close, session.value)
        except Exception as error:
            _log.warning("cannot close the session", error=describe_error(error), **details)
        else:
            _log.info("session is closed", **details)


def _has_failed(session: Session) -> bool:
    return _has_failed_task(session.opening)


def _has_failed_task(opening: asyncio.Task[Any]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


def _failure(error: Exception, delay: float) -> SessionError:
    if isinstance(error, ReconcileError):
        return SessionError(error.reason, error.message, retry_after=delay)
    message = describe_error(error)
    return SessionError(REASON_SESSION_NOT_OPENED, message, retry_after=delay)


def _copy(error: BaseException | None, retry_after: float) -> SessionError:
    """Return an error of its own for each caller: a traceback belongs to one task."""
    if isinstance(error, SessionError):
        return SessionError(error.reason, error.message, retry_after=retry_after)
    return SessionError(REASON_SESSION_NOT_OPENED, repr(error), retry_after=retry_after)


PERIOD_SECONDS: Final = 10.0
TIMEOUT_SECONDS: Final = 5.0

_log = get_logger("readiness")


class ReadinessCheck:
    """Calls a function periodically; ready while the last call ended without an exception.

    It does not use the threads of the reconcilers' calls: a check that hangs must neither block
    those calls nor make the manager unhealthy.
    """

    def __init__(self, name: str, function: Callable[[], Awaitable[None] | None]) -> None:
        self.name = name
        self._function = function
        self._running: asyncio.Future[None] | None = None
        self._problem: str | None = "not called yet"

    def is_ready(self) -> bool:
        """Return whether the last call succeeded; False before the first one."""
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


ADMISSION_SECONDS: Final = 60.0
"""How long a caller that was admitted may take to return; most do at once."""
_EPSILON: Final = 1e-6
"""A timer may fire before its time, by less than the resolution of the clock."""


class Rate(NamedTuple):
    """A rate limit: calls per second, 0 for unlimited, and how many calls may start together."""

    per_second: float
    burst: int

    @classmethod
    def of(cls, per_second: float, burst: int) -> Rate:
        """Return a rate whose burst defaults to the calls of one second, but at least one.

        Raises ValueError for a negative or infinite rate.
        """
        if not 0 <= per_second < math.inf or burst < 0:
            raise ValueError(f"neither 0 nor positive: rate {per_second}, burst {burst}")
        return cls(per_second, burst or max(1, math.ceil(per_second)))


class RateLimiter:
    """A token bucket with a waiting line: deletions first, then by priority.

    It blocks no worker: a caller that is refused leaves, and is called back when it may return.
    """

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._tokens = float(rate.burst)
        self._refilled = monotonic()
        self._paused_until = -math.inf
        self._line = _Line()
        # By time: a caller that was admitted need not return, because its object may be gone.
        self._admitted: OrderedDict[Hashable, float] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, caller: Hashable) -> bool:
        """Return whether the caller may call now; if not, the caller has to `wait`."""
        was_admitted = self._admitted.pop(caller, None) is not None
        if monotonic() < self._paused_until:
            if was_admitted:
                # It got its token before the pause, and makes no call with it now.
                self._tokens = min(self._tokens + 1.0, float(self._rate.burst))
            return False
        # A newcomer must not overtake the callers in the line.
        return was_admitted or (not self._line and self._take())

    def wait(
        self, caller: Hashable, wake: Callable[[], None], priority: Priority, *, deletion: bool
    ) -> None:
        """Queue a caller and call `wake` on its turn; a queued caller keeps its position."""
        self._line.push(caller, wake, priority, deletion=deletion)
        self._schedule()

    def pause(self, seconds: float) -> None:
        """Admit no caller for some seconds."""
        self._paused_until = max(self._paused_until, monotonic() + seconds)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._schedule()

    def _take(self) -> bool:
        if self._rate.per_second == 0:
            return True
        now = monotonic()
        earned = (now - self._refilled) * self._rate.per_second
        self._tokens = min(self._tokens + earned, float(self._rate.burst))
        self._refilled = now
        if self._tokens < 1.0 - _EPSILON:
            return False
        self._tokens = max(0.0, self._tokens - 1.0)
        return True

    def _schedule(self) -> None:
        if self._timer is not None or not self._line:
            return
        loop = asyncio.get_running_loop()
        due = max(self._paused_until, loop.time())
        if self._rate.per_second:
            due = max(due, self._refilled + (1.0 - self._tokens) / self._rate.per_second)
        self._timer = loop.call_at(due, self._admit_waiting)

    def _admit_waiting(self) -> None:
        self._timer = None
        now = monotonic()
        while self._admitted and next(iter(self._admitted.values())) < now - ADMISSION_SECONDS:
            self._admitted.popitem(last=False)
        while self._line and self._take():
            caller, wake = self._line.pop()
            self._admitted[caller] = now
            wake()
        self._schedule()


class _Line:
    """Callers that wait, without duplicates.

    Deletions come first, but every ``LOW_SHARE``-th caller is another one while any waits:
    deletions that never succeed must not block all others.
    """

    def __init__(self) -> None:
        self._wakes: dict[Hashable, Callable[[], None]] = {}
        self._deletions: OrderedDict[Hashable, None] = OrderedDict()
        # A caller that has moved to the deletions stays here, and is skipped.
        self._others = PriorityFifo[Hashable]()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._wakes)

    def push(
        self, caller: Hashable, wake: Callable[[], None], priority: Priority, *, deletion: bool
    ) -> None:
        """Append a caller; one that waits already may only move up."""
        self._wakes[caller] = wake
        if deletion:
            self._deletions[caller] = None
        elif caller not in self._deletions:
            self._others.push(caller, priority)

    def pop(self) -> tuple[Hashable, Callable[[], None]]:
        """Remove and return the next caller; raises KeyError if none waits."""
        while True:
            caller = self._next()
            wake = self._wakes.pop(caller, None)
            if wake is not None:
                return caller, wake

    def _next(self) -> Hashable:
        if self._deletions:
            self._turn = (self._turn + 1) % LOW_SHARE if self._others else 0
        if self._deletions and (self._turn or not self._others):
            return self._deletions.popitem(last=False)[0]
        return self._others.pop()[0]


class SharedSessions:
    """Sessions and rate limits of the kinds that name the same session factory, or none."""

    def __init__(self, pool: SessionPool | None, rate: Rate) -> None:
        self.pool = pool
        self._rate = rate
        self._limiters: dict[str, RateLimiter] = {}

    def limiter(self, identity: str) -> RateLimiter:
        """Return the rate limiter of an identity."""
        if identity not in self._limiters:
            self._limiters[identity] = RateLimiter(self._rate)
        return self._limiters[identity]


class SessionPools:
    """Creates each session factory once, however many kinds name it."""

    def __init__(
        self, executor: HandlerExecutor, *, rate: float | None = None, burst: int | None = None
    ) -> None:
        """``rate`` and ``burst``, if not None, replace those of the factories."""
        self.executor = executor
        self._rate = rate
        self._burst = burst
        self._shared: dict[type[SessionFactory[Any]] | None, SharedSessions] = {}
        self.checks: list[ReadinessCheck] = []

    def of(self, reconciler: object) -> SharedSessions:
        """Return the sessions of a reconciler.

        Raises TypeError for a ``session_factory`` that is not a SessionFactory, and ValueError for
        a negative rate.
        """
        cls = getattr(type(reconciler), "session_factory", None)
        if cls is not None and not (isinstance(cls, type) and issubclass(cls, SessionFactory)):
            name = type(reconciler).__name__
            raise TypeError(f"{name}.session_factory must be a SessionFactory class: {cls!r}")
        if cls not in self._shared:
            self._shared[cls] = self._create(cls)
        return self._shared[cls]

    async def close(self, seconds: float) -> None:
        """Close all sessions that no call uses; give up after some seconds."""
        pools = [shared.pool for shared in self._shared.values() if shared.pool is not None]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(pool.close() for pool in pools))

    def _create(self, cls: type[SessionFactory[Any]] | None) -> SharedSessions:
        rate = (cls.rate if cls is not None else 0.0) if self._rate is None else self._rate
        burst = (cls.burst if cls is not None else 0) if self._burst is None else self._burst
        if cls is None:
            return SharedSessions(None, Rate.of(rate, burst))
        factory = cls()
        if cls.readyz is not SessionFactory.readyz:
            self.checks.append(ReadinessCheck(cls.__qualname__, factory.readyz))
        return SharedSessions(SessionPool(factory, self.executor), Rate.of(rate, burst))
