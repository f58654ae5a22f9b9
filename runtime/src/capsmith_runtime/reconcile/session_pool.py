"""The sessions of one factory: one for each identity, opened once and closed when unused."""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from capsmith_runtime.errors import ReconcileError, SessionError
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.log import describe_error, get_logger
from capsmith_runtime.reconcile.credentials import Credentials, qualified_identity
from capsmith_runtime.reconcile.sessions import SessionFactory

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
        """Return what the factory opened."""
        return self.opening.result()

    def stop_idle_timer(self) -> None:
        """Keep the session open although nothing uses it."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
            self.idle_timer = None


class SessionPool:
    """Opens, shares and closes the sessions of one factory.  Lives on one event loop."""

    def __init__(self, factory: SessionFactory[Any], executor: HandlerExecutor) -> None:
        self.factory = factory
        self._name = type(factory).__name__
        self._executor = executor
        self._sessions: dict[str, Session] = {}
        self._closings: set[asyncio.Task[None]] = set()

    def check(self, credentials: Credentials) -> None:
        """Raise SessionError if these credentials failed, and it is too early to try again."""
        session = self._sessions.get(qualified_identity(credentials))
        if session is not None and session.credentials == credentials and _has_failed(session):
            left = session.retry_at - monotonic()
            if left > 0:
                raise _copy(session.opening.exception(), left)

    async def acquire(self, credentials: Credentials) -> Session:
        """Return the session of an identity, which `release` must get back.

        All callers wait for the one that opens it.  Raises SessionError if that fails.
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
        """End one use of a session; the last use of a retired one closes it."""
        session.users -= 1
        if session.users:
            return
        if session.is_retired:
            self._close(session)
        elif not _has_failed(session):
            loop, timeout = asyncio.get_running_loop(), self.factory.idle_timeout
            session.stop_idle_timer()
            session.idle_timer = loop.call_later(timeout, self._retire, session)

    async def close(self) -> None:
        """Close all sessions, except those that calls still use."""
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
