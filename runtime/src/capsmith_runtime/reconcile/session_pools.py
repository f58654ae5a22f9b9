"""Sessions and rate limits shared by the kinds with the same session factory."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

from capsmith_runtime.contract import constants
from capsmith_runtime.errors import ContractError, ReconcileError, SessionError, SessionExpiredError
from capsmith_runtime.kube.clock import Backoff, monotonic
from capsmith_runtime.kube.executor import (
    SLOW_SECONDS,
    HandlerExecutor,
    StillRunningError,
    create_shared_context,
)
from capsmith_runtime.kube.log import describe_error, get_logger, read_message
from capsmith_runtime.kube.requeue import DeferredError, Priority
from capsmith_runtime.reconcile.idle_entries import IdleEntries
from capsmith_runtime.reconcile.rate_limits import Rate, RateLimiter
from capsmith_runtime.reconcile.results import describe_unexpected_result
from capsmith_runtime.reconcile.session_tasks import ReadinessCheck, SessionWatch
from capsmith_runtime.reconcile.sessions import (
    Credentials,
    ReportedChange,
    SessionFactory,
    hide_credentials,
    qualified_identity,
)
from capsmith_runtime.reconcile.tenant_limits import TenantLimits

_log = get_logger("sessions")

REASON_SESSION_NOT_OPENED: Final = "SessionNotOpened"
BASE_DELAY: Final = 1.0
MAX_DELAY: Final = 300.0
"""Maximum back-off in seconds after a session could not be opened."""
OPEN_SECONDS: Final = SLOW_SECONDS
"""Seconds that workers wait for a session that is being opened."""
SHORT_LIFE_SECONDS: Final = 60.0
"""Minimum life of a session; a shorter one is treated as if it could not be opened.

Otherwise an infrastructure that accepts logins but rejects their sessions would get a login for
each call.
"""
HANGING_LOGINS: Final = 2
"""Maximum number of hanging attempts to open sessions for one identity.

Only changed credentials cause a new attempt, so each of these attempts uses different ones.
"""


class Session:
    """An identity's session for one version of its credentials."""

    def __init__(self, credentials: Credentials, failures: int) -> None:
        self.credentials = credentials
        self.failures = failures
        """Number of consecutive sessions that could not be opened or ended soon after opening."""
        self.retry_at = 0.0
        self.users = 0
        self.is_retired = False
        self.hangs = False
        """Whether the attempt to open the session exceeded its time limit and is still running."""
        self.began = monotonic()
        self.opened_at = self.began
        self.account: str | None = None
        """The account that the factory has returned, or None."""
        self.opening: asyncio.Future[Any]
        self.watch: SessionWatch | None = None
        self.idle_timer: asyncio.TimerHandle | None = None

    @property
    def value(self) -> Any:
        """Return the value that the factory opened."""
        return self.opening.result()

    def stop_idle_timer(self) -> None:
        """Cancel the timer that closes the session if it stays unused."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
            self.idle_timer = None


class SessionPool:
    """Opens, shares and closes one factory's sessions, on a single event loop."""

    def __init__(
        self,
        factory: SessionFactory[Any],
        executor: HandlerExecutor,
        enqueue: Callable[[ReportedChange], None] = lambda change: None,
    ) -> None:
        """Initialise without sessions.

        ``enqueue`` is called for each change that the factory's ``watch`` reports.
        """
        self.factory = factory
        self._enqueue = enqueue
        self._name = type(factory).__name__
        self._executor = executor
        self._sessions: dict[str, Session] = {}
        self._closings: set[asyncio.Task[None]] = set()
        self._hanging: Counter[str] = Counter()
        self._is_closed = False

    def check(self, credentials: Credentials) -> None:
        """Raise SessionError if these credentials have failed and must not be tried again yet."""
        session = self._sessions.get(qualified_identity(credentials))
        if session is not None and session.credentials == credentials and _has_failed(session):
            left = session.retry_at - monotonic()
            if session.hangs:
                # A second attempt would hang as well, in another thread.
                left = max(left, BASE_DELAY)
            if left > 0:
                raise _copy(session.opening.exception(), left)

    async def prepare(self, credentials: Credentials) -> None:
        """Open an identity's session if necessary, and wait at most ``OPEN_SECONDS`` for it.

        Raises SessionError like :meth:`acquire`, and DeferredError if opening takes longer: a
        worker that waited longer would delay other identities.
        """
        self.check(credentials)
        opening = self._current(credentials)
        left = opening.began + OPEN_SECONDS - monotonic()
        if left > 0:
            await asyncio.wait({opening.opening}, timeout=left)
        if opening.opening.done():
            if _has_failed(opening):
                left = max(0.0, opening.retry_at - monotonic())
                raise _copy(opening.opening.exception(), left)
            return
        identity = qualified_identity(credentials)

        def subscribe(wake: Callable[[], None], priority: Priority) -> None:
            opening.opening.add_done_callback(lambda _: wake())

        raise DeferredError(f"the session of {identity!r} is being opened", subscribe=subscribe)

    async def acquire(self, credentials: Credentials) -> Session:
        """Return an identity's session, which the caller must pass to `release` afterwards.

        Concurrent callers wait until one of them has opened the session.  Raises SessionError if
        that fails.
        """
        self.check(credentials)
        session = self._current(credentials)
        session.stop_idle_timer()
        session.users += 1
        try:
            # A cancelled caller must not cancel the attempt for the others.
            await asyncio.shield(session.opening)
        except BaseException as error:
            self.release(session)
            if isinstance(error, SessionError):
                raise _copy(error, error.retry_after or 0.0) from error
            raise
        return session

    def release(self, session: Session) -> None:
        """End one use of a session, and close the session if it is retired and no longer used."""
        session.users -= 1
        if session.users:
            return
        if session.is_retired:
            self._close(session)
        else:
            self._start_idle_timer(session)

    def expire(self, session: Session, error: SessionExpiredError) -> Exception:
        """Stop giving out a session that the infrastructure has ended.

        Returns the exception for the call that noticed the end: DeferredError to repeat the call
        with a new session, or SessionError if the session ended within ``SHORT_LIFE_SECONDS``.
        """
        deferred = DeferredError("the session has expired", seconds=0.0)
        if session.is_retired:
            # Another call noticed first, or the credentials have changed since.
            return deferred
        identity = qualified_identity(session.credentials)
        log = _log.bind(factory=self._name, identity=identity)
        log.info("session has expired", error=read_message(error))
        self._retire(session)
        if monotonic() - session.opened_at >= SHORT_LIFE_SECONDS:
            return deferred
        failed = Session(session.credentials, session.failures + 1)
        delay = _back_off(failed.failures)
        failed.retry_at = monotonic() + delay
        failed.opening = asyncio.get_running_loop().create_future()
        failed.opening.set_exception(SessionError(error.reason, error.message, retry_after=delay))
        failed.opening.exception()  # Each caller gets a copy: asyncio must not log the original.
        self._sessions[identity] = failed
        return _copy(failed.opening.exception(), delay)

    def _start_idle_timer(self, session: Session) -> None:
        # A failed session stays in the pool, because it knows when the next attempt is due.
        if session.users or session.is_retired or _has_failed(session):
            return
        loop, timeout = asyncio.get_running_loop(), self.factory.idle_timeout
        session.stop_idle_timer()
        session.idle_timer = loop.call_later(timeout, self._retire, session)

    async def close(self) -> None:
        """Close all sessions except those that calls are still using."""
        self._is_closed = True
        for session in list(self._sessions.values()):
            self._retire(session)
        if self._closings:
            await asyncio.wait(self._closings)

    def _current(self, credentials: Credentials) -> Session:
        session, failures = self._sessions.get(qualified_identity(credentials)), 0
        if session is not None:
            is_same = session.credentials == credentials
            if is_same and not _has_failed(session):
                return session
            # Other credentials are probably the correction, so they are tried without the back-off
            # of the old ones.
            failures = session.failures if is_same else 0
            self._check_hanging(session)
            self._retire(session)
        session = Session(credentials, failures)
        session.opening = asyncio.get_running_loop().create_task(
            self._open(session), name=f"open-{self._name}", context=create_shared_context()
        )
        # Every user may be cancelled before it gets the exception.
        session.opening.add_done_callback(_has_failed_task)
        session.opening.add_done_callback(lambda _: self._start_idle_timer(session))
        self._sessions[qualified_identity(credentials)] = session
        return session

    async def _open(self, session: Session) -> Any:
        identity = qualified_identity(session.credentials)
        hide_credentials(session.credentials)
        try:
            opened = await self._executor.call_in_turn(
                self.factory.open, session.credentials, tenant=identity
            )
            session.account = await self._read_account(opened, identity)
        except Exception as error:
            if isinstance(error, StillRunningError):
                self._note_hanging(session, error)
            session.failures += 1
            delay = _back_off(session.failures)
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
        session.opened_at = monotonic()
        _log.info("session is open", factory=self._name, identity=identity)
        if type(self.factory).watch is not SessionFactory.watch:
            self._start_watch(session, opened)
        return opened

    def _start_watch(self, session: Session, opened: object) -> None:
        def expire(error: SessionExpiredError) -> None:
            is_current = not session.is_retired
            self.expire(session, error)
            if is_current:
                self._reopen(session.credentials, monotonic() + self.factory.idle_timeout)

        identity = qualified_identity(session.credentials)
        session.watch = SessionWatch(self.factory, identity, enqueue=self._enqueue, expire=expire)
        session.watch.start(opened)

    def _reopen(self, credentials: Credentials, until: float) -> None:
        """Open an identity's next session, and try again after failures until the time ``until``.

        Otherwise only a call would open it, and the changes until then would be missed.
        """
        session = self._sessions.get(qualified_identity(credentials))
        is_replaced = session is not None and session.credentials != credentials
        if is_replaced or self._is_closed or monotonic() >= until:
            return
        try:
            self.check(credentials)
            opening = self._current(credentials).opening
        except SessionError as error:
            delay = error.retry_after or BASE_DELAY
            asyncio.get_running_loop().call_later(delay, self._reopen, credentials, until)
            return

        def retry(opened: asyncio.Future[Any]) -> None:
            # It is cancelled only when the event loop ends.
            if not opened.cancelled():
                self._reopen(credentials, until)

        if not opening.done():
            opening.add_done_callback(retry)

    async def _read_account(self, opened: Any, identity: str) -> str | None:
        """Return the account of a new session; if that fails, close the session and raise."""
        if type(self.factory).account is SessionFactory.account:
            return None
        try:
            account: object = await self._executor.call_in_turn(
                self.factory.account, opened, tenant=identity
            )
            if not isinstance(account, str):
                message = describe_unexpected_result(self.factory.account, account, str)
                raise ContractError(constants.REASON_INVALID_RESULT, message)
        except StillRunningError as error:
            # The hanging thread still uses the session.
            error.when_ended(lambda: self._track(self._call_close(opened, identity)))
            raise
        except BaseException:
            self._track(self._call_close(opened, identity))
            raise
        return account

    def _note_hanging(self, session: Session, error: StillRunningError) -> None:
        identity = qualified_identity(session.credentials)
        session.hangs = True
        self._hanging[identity] += 1

        def end() -> None:
            session.hangs = False
            self._hanging[identity] -= 1
            if not self._hanging[identity]:
                del self._hanging[identity]

        error.when_ended(end)

    def _check_hanging(self, session: Session) -> None:
        """Raise SessionError if attempts with previous credentials occupy too many threads."""
        if self._hanging[qualified_identity(session.credentials)] >= HANGING_LOGINS:
            raise _copy(session.opening.exception(), BASE_DELAY)

    def _retire(self, session: Session) -> None:
        """Stop giving the session to callers, and close it once no call uses it."""
        session.stop_idle_timer()
        session.is_retired = True
        if self._sessions.get(qualified_identity(session.credentials)) is session:
            del self._sessions[qualified_identity(session.credentials)]
        if not session.users:
            self._close(session)

    def _close(self, session: Session) -> None:
        self._track(self._close_opened(session))

    def _track(self, closing: Coroutine[Any, Any, None]) -> None:
        # An empty context: the session belongs to no object, least of all to the last that used it.
        task = asyncio.get_running_loop().create_task(
            closing, name=f"close-{self._name}", context=contextvars.Context()
        )
        self._closings.add(task)
        task.add_done_callback(self._closings.discard)

    async def _close_opened(self, session: Session) -> None:
        # A session can be retired while it is being opened; what it acquires then must still be
        # released.
        await asyncio.wait({session.opening})
        hide_credentials(session.credentials)
        if _has_failed(session):
            return
        if session.watch is not None:
            await session.watch.stop()
        await self._call_close(session.value, qualified_identity(session.credentials))

    async def _call_close(self, opened: Any, identity: str) -> None:
        details: dict[str, Any] = {"factory": self._name, "identity": identity}
        try:
            await self._executor.call_in_turn(self.factory.close, opened, tenant=identity)
        except Exception as error:
            _log.warning("cannot close the session", error=describe_error(error), **details)
        else:
            _log.info("session is closed", **details)


def _has_failed(session: Session) -> bool:
    return _has_failed_task(session.opening)


def _has_failed_task(opening: asyncio.Future[Any]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


def _back_off(failures: int) -> float:
    return Backoff(BASE_DELAY, MAX_DELAY, failures - 1).next()


def _failure(error: Exception, delay: float) -> SessionError:
    if isinstance(error, ReconcileError):
        return SessionError(error.reason, error.message, retry_after=delay)
    message = describe_error(error)
    return SessionError(REASON_SESSION_NOT_OPENED, message, retry_after=delay)


def _copy(error: BaseException | None, retry_after: float) -> SessionError:
    """Return a new error for each caller, since a traceback belongs to a single task."""
    if isinstance(error, SessionError):
        return SessionError(error.reason, error.message, retry_after=retry_after)
    return SessionError(REASON_SESSION_NOT_OPENED, repr(error), retry_after=retry_after)


class SharedSessions:
    """Sessions and rate limits shared by all kinds that have the same session factory, or none."""

    def __init__(self, pool: SessionPool | None, rate: Rate) -> None:
        self.pool = pool
        self._rate = rate
        self._limiters = IdleEntries[RateLimiter]()

    def limiter(self, identity: str) -> RateLimiter:
        """Return an identity's rate limiter, creating it if necessary.

        Limiters that have long been unused are dropped.
        """
        return self._limiters.get(identity, lambda: RateLimiter(self._rate))

    @property
    def paused(self) -> int:
        """Return the number of identities that the infrastructure is currently rate-limiting."""
        return sum(each.is_paused for each in self._limiters.values())


class SessionPools:
    """Creates each session factory once, however many kinds use it."""

    def __init__(
        self,
        executor: HandlerExecutor,
        *,
        rate: float | None = None,
        burst: int | None = None,
        concurrency: int = 10,
    ) -> None:
        """Initialise without sessions.

        If ``rate`` and ``burst`` are set, they replace those of the factories. ``concurrency`` is
        the number of workers for kinds that set none.
        """
        self.executor = executor
        self.limits = TenantLimits(executor)
        self.concurrency = concurrency
        self._rate = rate
        self._burst = burst
        self._shared: dict[type[SessionFactory[Any]] | None, SharedSessions] = {}
        # Start at 0: if a counter appears with a higher value, Prometheus does not see an increase.
        for cause, count in (("rate-limit", self._count_limited), ("hang", self._count_hanging)):
            executor.metrics.identity_pauses.labels(cause)
            executor.metrics.identities_paused.labels(cause).set_function(count)
        self.checks: list[ReadinessCheck] = []
        self.listeners: list[Callable[[ReportedChange], None]] = []
        """Functions that enqueue the objects whose infrastructure has changed."""

    def of(self, reconciler: object) -> SharedSessions:
        """Return the sessions that a reconciler shares.

        Raises TypeError if its ``session_factory`` is not a SessionFactory, and ValueError if the
        factory's ``rate`` or ``burst`` is invalid.
        """
        cls = getattr(type(reconciler), "session_factory", None)
        if cls is not None and not (isinstance(cls, type) and issubclass(cls, SessionFactory)):
            name = type(reconciler).__name__
            raise TypeError(f"{name}.session_factory must be a SessionFactory class: {cls!r}")
        if cls not in self._shared:
            self._shared[cls] = self._create(cls)
        return self._shared[cls]

    async def close(self, seconds: float) -> None:
        """Close all sessions that no call is using; give up after ``seconds``."""
        pools = [shared.pool for shared in self._shared.values() if shared.pool is not None]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(pool.close() for pool in pools))

    def _count_limited(self) -> float:
        return sum(shared.paused for shared in self._shared.values())

    def _count_hanging(self) -> float:
        return self.limits.paused

    def _create(self, cls: type[SessionFactory[Any]] | None) -> SharedSessions:
        rate = (cls.rate if cls is not None else 0.0) if self._rate is None else self._rate
        burst = (cls.burst if cls is not None else 0) if self._burst is None else self._burst
        if cls is None:
            return SharedSessions(None, Rate.of(rate, burst))
        factory = cls()
        if cls.readyz is not SessionFactory.readyz:
            self.checks.append(ReadinessCheck(cls.__qualname__, factory.readyz))
        pool = SessionPool(factory, self.executor, self._enqueue)
        return SharedSessions(pool, Rate.of(rate, burst))

    def _enqueue(self, change: ReportedChange) -> None:
        for listener in self.listeners:
            listener(change)
