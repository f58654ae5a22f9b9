"""Call the author's methods: with a session, and not more often than the infrastructure allows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from capsmith_runtime.contract import constants
from capsmith_runtime.errors import (
    ContractError,
    RateLimitedError,
    ReconcileError,
    SessionError,
    TerminalError,
)
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.executor import HandlerExecutor, StillRunningError
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.reconcile.credentials import Credentials, qualified_identity
from capsmith_runtime.reconcile.results import (
    NotAvailableError,
    Terminated,
    Waiting,
    unexpected_result,
)
from capsmith_runtime.reconcile.scopes import SessionScope
from capsmith_runtime.reconcile.session_pool import SessionPool
from capsmith_runtime.reconcile.session_pools import SessionPools

T = TypeVar("T")

_log = get_logger("hooks")


class AuthorCalls:
    """Calls the methods of one reconciler for the objects of one controller."""

    def __init__(self, reconciler: object, sessions: SessionPools) -> None:
        self._executor = sessions.executor
        self._shared = sessions.of(reconciler)
        self._holds: dict[Hashable, tuple[str, float]] = {}

    def forget(self, key: Hashable) -> None:
        """Forget an object that no longer exists."""
        self._holds.pop(key, None)

    async def call(
        self,
        key: Hashable,
        hook: Callable[..., Any],
        scope: object,
        *further: object,
        arguments: tuple[object, ...] | None = None,
        deletion: bool = False,
    ) -> Any:
        """Return the result of a method, called with the scope and further arguments.

        ``arguments`` replace them all, for a method that gets its scope inside another object.

        Raises its exception, SessionError, HookTimeoutError or HooksExhaustedError, and
        DeferredError if the method may not be called yet.
        """
        credentials = (
            scope._session_credentials() if isinstance(scope, SessionScope) else Credentials()
        )
        # A decorated method may be any callable.
        method = getattr(hook, "__name__", repr(hook))
        self._check_hold(key, method)
        known = credentials if isinstance(credentials, Credentials) else Credentials()
        if self._shared.pool is not None and not deletion:
            self._shared.pool.check(known)
        self._admit(key, qualified_identity(known), deletion=deletion)
        if arguments is None:
            arguments = (scope, *further)
        try:
            if self._shared.pool is None or not isinstance(scope, SessionScope):
                return await self._executor.call(hook, *arguments)
            needs_session = not deletion
            call = _SessionCall(self._shared.pool, self._executor, scope, needs_session)
            return await call.run(credentials, hook, *arguments)
        except RateLimitedError as error:
            self._pause(qualified_identity(known), error)
            raise
        except ReconcileError as error:
            # A session is opened again as soon as its credentials change.
            if error.retry_after is not None and not isinstance(error, SessionError):
                self._holds[key] = method, monotonic() + error.retry_after
            raise

    def _check_hold(self, key: Hashable, method: str) -> None:
        """Let no event shorten the delay that the author demanded."""
        held, until = self._holds.get(key, ("", 0.0))
        left = until - monotonic()
        if held == method and left > 0:
            raise DeferredError(f"{method} may be called in {left:.1f} s", seconds=left)
        self._holds.pop(key, None)

    def _pause(self, identity: str, error: RateLimitedError) -> None:
        self._shared.limiter(identity).pause(error.retry_after)
        seconds = round(error.retry_after, 1)
        _log.warning("calls are paused", identity=identity, seconds=seconds, error=str(error))

    def _admit(self, key: Hashable, identity: str, *, deletion: bool) -> None:
        limiter, caller = self._shared.limiter(identity), (self, key)
        if not limiter.admit(caller):
            message = f"calls of identity {identity!r} are limited"
            raise DeferredError(
                message,
                subscribe=lambda wake, priority: limiter.wait(
                    caller, wake, priority, deletion=deletion
                ),
            )


class _SessionCall:
    """One call of a method that may use the session of its scope."""

    def __init__(
        self, pool: SessionPool, executor: HandlerExecutor, scope: SessionScope, needs_session: bool
    ) -> None:
        self._pool = pool
        self._factory = type(pool.factory)
        self._executor = executor
        self._scope = scope
        self._needs_session = needs_session

    async def run(
        self, credentials: Credentials | Waiting, hook: Callable[..., Any], *arguments: object
    ) -> Any:
        """Call a method; a deletion gets the error only when it requests the session."""
        slot = self._scope._session
        if isinstance(credentials, Waiting):
            slot.fail(self._factory, NotAvailableError(credentials))
            return await self._executor.call(hook, *arguments)
        try:
            session = await self._pool.acquire(credentials)
        except SessionError as error:
            if self._needs_session:
                raise
            slot.fail(self._factory, error)
            return await self._executor.call(hook, *arguments)
        slot.provide(self._factory, session.value)
        try:
            result = await self._executor.call(hook, *arguments)
        except StillRunningError as error:
            error.when_ended(lambda: self._pool.release(session))
            raise
        except BaseException:
            self._pool.release(session)
            raise
        self._pool.release(session)
        return result


def checked_result(hook: Callable[..., object], result: object, expected: type[T]) -> T | Waiting:
    """Return a result of a method that has the expected type.

    Raises TerminalError for Terminated, and ContractError for any other type.
    """
    if isinstance(result, (expected, Waiting)):
        return result
    if isinstance(result, Terminated):
        raise TerminalError(result.reason, result.message, status=result.status)
    message = unexpected_result(hook, result, expected, Waiting)
    raise ContractError(constants.REASON_INVALID_RESULT, message)
