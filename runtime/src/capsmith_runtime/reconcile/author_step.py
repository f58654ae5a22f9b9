"""The step of a reconcile that calls the author's code, with its scope, session and rate limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.constants import WATCH_FILTER_LABEL
from capsmith_runtime.errors import (
    ContractError,
    RateLimitedError,
    ReconcileError,
    SessionError,
    SessionExpiredError,
    TerminalError,
)
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, key_of
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.events import EventRecorder
from capsmith_runtime.kube.executor import (
    HandlerExecutor,
    HookTimeoutError,
    NamespaceBusyError,
    StillRunningError,
)
from capsmith_runtime.kube.log import get_logger, read_message
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.reconcile.accounts import AccountCheck
from capsmith_runtime.reconcile.caches import cluster_name_of
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.events import send_events
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.kubernetes_client import (
    ClientSession,
    Inherited,
    KubernetesClient,
    connect,
    create_apply_owner,
    create_opener,
    disconnect,
)
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.permissions import Permissions
from capsmith_runtime.reconcile.results import (
    NotAvailableError,
    Terminated,
    Waiting,
    describe_unexpected_result,
)
from capsmith_runtime.reconcile.scopes import (
    DeleteScopeFields,
    ScopeFields,
    SessionScope,
    read_credentials,
)
from capsmith_runtime.reconcile.session_pools import Session, SessionPool, SessionPools
from capsmith_runtime.reconcile.sessions import Credentials, hide_credentials, qualified_identity
from capsmith_runtime.reconcile.status_reporter import StatusReporter, create_object_logger
from capsmith_runtime.reconcile.tenant_limits import Caller, CallPermit

T = TypeVar("T")

_log = get_logger("hooks")


class AuthorCalls:
    """Calls a reconciler's methods for the objects of one controller."""

    def __init__(
        self, reconciler: object, sessions: SessionPools, *, concurrency: int | None = None
    ) -> None:
        """Initialise for one reconciler.

        ``concurrency`` is the kind's number of workers, or None for the default number.
        """
        self._reconciler = reconciler
        self._executor = sessions.executor
        self._limits = sessions.limits
        self._concurrency = sessions.concurrency if concurrency is None else concurrency
        self._shared = sessions.of(reconciler)
        self._holds: dict[Hashable, tuple[str, float]] = {}

    def forget(self, key: Hashable) -> None:
        """Drop the recorded state of an object that no longer exists."""
        self._holds.pop(key, None)

    async def call(
        self,
        key: Hashable,
        hook: Callable[..., Any],
        scope: object,
        *further: object,
        arguments: tuple[object, ...] | None = None,
        deletion: bool = False,
        owner: str = "",
        check_account: Callable[[str | None], Awaitable[None]] | None = None,
    ) -> Any:
        """Call a method with ``scope`` and the ``further`` arguments, and return its result.

        If ``arguments`` is set, it replaces all arguments, for a method that gets its scope inside
        another object.  If the object has no identity, the rate limit of ``owner`` applies.
        ``check_account`` is called before the method with the account of the session; if it raises
        an exception, the method is not called.

        Raises the method's exception, SessionError, HookTimeoutError or HooksExhaustedError, and
        DeferredError if the method may not be called yet.
        """
        credentials = read_credentials(scope)
        hide_credentials(credentials)
        # A decorated method may be any callable.
        method = getattr(hook, "__name__", repr(hook))
        self._check_hold(key, method)
        identity = qualified_identity(credentials) if isinstance(credentials, Credentials) else ""
        await self._prepare_session(scope, credentials, deletion=deletion)
        tenant = self._limits.of(identity or owner)
        caller = Caller((self, key), deletion)
        tenant.admit(self._reconciler, self._concurrency, caller)
        # Last, because it takes a token: a caller that the checks above reject must not use up the
        # rate.
        self._admit(caller, identity)
        arguments = (scope, *further) if arguments is None else arguments
        try:
            call = _TenantCall(self._executor, tenant.name, tenant.begin(self._reconciler, caller))
            if self._shared.pool is None or not isinstance(scope, SessionScope):
                return await call.run(hook, *arguments)
            pool, needs_session = self._shared.pool, not deletion
            session_call = _SessionCall(pool, call, scope, needs_session, check_account)
            return await session_call.run(credentials, hook, *arguments)
        except RateLimitedError as error:
            self._pause(identity, error)
            raise
        except ReconcileError as error:
            # A session is opened again as soon as its credentials change.
            if error.retry_after is not None and not isinstance(error, SessionError):
                self._holds[key] = method, monotonic() + error.retry_after
            raise

    async def _prepare_session(
        self, scope: object, credentials: Credentials | Waiting, *, deletion: bool
    ) -> None:
        pool = self._shared.pool
        if pool is None or isinstance(credentials, Waiting):
            return
        try:
            if isinstance(scope, SessionScope):
                await pool.prepare(credentials)
            else:
                pool.check(credentials)
        except SessionError:
            # Deletions are called even while no session can be opened: not every deletion needs
            # one, and none may depend on credentials that a user may have deleted.
            if not deletion:
                raise

    def _check_hold(self, key: Hashable, method: str) -> None:
        """Raise DeferredError during the delay that the author requested, whatever event occurs."""
        held, until = self._holds.get(key, ("", 0.0))
        left = until - monotonic()
        if held == method and left > 0:
            raise DeferredError(f"{method} may be called in {left:.1f} s", seconds=left)
        self._holds.pop(key, None)

    def _pause(self, identity: str, error: RateLimitedError) -> None:
        self._shared.limiter(identity).pause(error.retry_after)
        self._executor.metrics.identity_pauses.labels("rate-limit").inc()
        seconds, problem = round(error.retry_after, 1), read_message(error)
        _log.warning("calls are paused", identity=identity, seconds=seconds, error=problem)

    def _admit(self, caller: Caller, identity: str) -> None:
        limiter = self._shared.limiter(identity)
        if not limiter.admit(caller.key):
            message = f"calls of identity {identity!r} are limited"
            raise DeferredError(
                message,
                subscribe=lambda wake, priority: limiter.wait(
                    caller.key, wake, priority, deletion=caller.is_deleted
                ),
            )


class _TenantCall:
    """A single call of a method, which counts against its tenant's limits until it ends."""

    def __init__(self, executor: HandlerExecutor, tenant: str, permit: CallPermit) -> None:
        self._executor = executor
        self._tenant = tenant
        self._permit = permit

    async def run(self, hook: Callable[..., Any], *arguments: object) -> Any:
        """Call the method and return its result."""
        permit = self._permit
        try:
            result = await self._executor.call(hook, *arguments, tenant=self._tenant)
        except StillRunningError as error:
            permit.time_out(hangs=True)
            error.when_ended(permit.end)
            raise
        except HookTimeoutError:
            permit.time_out(hangs=False)
            raise
        except NamespaceBusyError as error:
            # The call has not begun, so there is nothing to report about its object.
            raise permit.postpone() from error
        except BaseException:
            permit.end()
            raise
        permit.succeed()
        return result

    def give_up(self) -> None:
        """Release the permit of a call that will not start."""
        self._permit.end()


class _SessionCall:
    """A single call of a method that may use its scope's session."""

    def __init__(
        self,
        pool: SessionPool,
        call: _TenantCall,
        scope: SessionScope,
        needs_session: bool,
        check_account: Callable[[str | None], Awaitable[None]] | None,
    ) -> None:
        self._pool = pool
        self._factory = type(pool.factory)
        self._call = call
        self._scope = scope
        self._needs_session = needs_session
        self._check_account = check_account

    async def run(
        self, credentials: Credentials | Waiting, hook: Callable[..., Any], *arguments: object
    ) -> Any:
        """Call a method, and return its result.

        A deletion is called even if no session could be opened; it raises the error only when it
        requests the session.
        """
        slot = self._scope._session
        if isinstance(credentials, Waiting):
            slot.fail(self._factory, NotAvailableError(credentials))
            return await self._call.run(hook, *arguments)
        try:
            session = await self._pool.acquire(credentials)
        except SessionError as error:
            if self._needs_session:
                self._call.give_up()
                raise
            slot.fail(self._factory, error)
            return await self._call.run(hook, *arguments)
        except BaseException:
            self._call.give_up()
            raise
        return await self._run_with(session, hook, *arguments)

    async def _run_with(
        self, session: Session, hook: Callable[..., Any], *arguments: object
    ) -> Any:
        """Call a method with a session, which is released afterwards."""
        if self._check_account is not None:
            try:
                await self._check_account(session.account)
            except BaseException:
                self._call.give_up()
                self._pool.release(session)
                raise
        self._scope._session.provide(self._factory, session.value)
        try:
            result = await self._call.run(hook, *arguments)
        except StillRunningError as error:
            # The hanging thread still uses the session.
            error.when_ended(lambda: self._pool.release(session))
            raise
        except SessionExpiredError as error:
            failure = self._pool.expire(session, error)
            self._pool.release(session)
            raise failure from error
        except BaseException:
            self._pool.release(session)
            raise
        self._pool.release(session)
        return result


def check_result(hook: Callable[..., object], result: object, expected: type[T]) -> T | Waiting:
    """Return a method's result if it is of the expected type or is Waiting.

    Raises TerminalError for Terminated, and ContractError for any other type.
    """
    if isinstance(result, (expected, Waiting)):
        return result
    if isinstance(result, Terminated):
        raise TerminalError(result.reason, result.message, status=result.status)
    message = describe_unexpected_result(hook, result, expected, Waiting)
    raise ContractError(constants.REASON_INVALID_RESULT, message)


def describe_owner(obj: JSON) -> str:
    """Return the name of the tenant for calls about an object without an identity.

    The tenant is the object's Cluster or, if it has none, the object's namespace.
    """
    return f"Cluster {metadata.namespace(obj)}/{cluster_name_of(obj) or ''}"


class Connections(Protocol):
    """The dependencies that scopes need to send requests and events."""

    @property
    def label(self) -> str:
        """Return the provider's manifest label, which is also its field manager."""
        ...

    @property
    def client(self) -> KubeClient:
        """Return the management cluster client."""
        ...

    @property
    def events(self) -> EventRecorder:
        """Return the recorder for Kubernetes events."""
        ...

    @property
    def permissions(self) -> Permissions:
        """Return the permissions that the author's code has."""
        ...


@contextmanager
def connect_scope(scope: object, to: Connections, obj: JSON) -> Iterator[None]:
    """Return a context manager that connects a scope to the API server while its block runs.

    After the block, the scope's clients send no requests.
    """
    send_events(scope, to.events, obj)
    client = getattr(scope, "client", None)
    if isinstance(client, KubernetesClient):
        namespace: str = getattr(scope, "namespace", "")
        loop = asyncio.get_running_loop()
        session = ClientSession(
            create_opener(to.client),
            to.permissions,
            namespace,
            loop,
            _inherited_from(obj),
            create_apply_owner(scope, to.label, obj),
        )
        connect(client, session)
    try:
        yield
    finally:
        # A client that the author's code keeps must not send requests later, when another process
        # may lead.
        for each in (client, getattr(scope, "workload_client", None)):
            if isinstance(each, KubernetesClient):
                disconnect(each)


def _inherited_from(obj: JSON) -> Inherited:
    """Return the label that new objects need to be visible to this manager (MG-01)."""
    group = metadata.text(obj, "apiVersion").rpartition("/")[0]
    value = metadata.labels(obj).get(WATCH_FILTER_LABEL)
    return Inherited(group, {} if value is None else {WATCH_FILTER_LABEL: value})


R = TypeVar("R")


class AuthorStep(Generic[R]):
    """Calls a reconciler's methods with scopes, and reports their exceptions."""

    def __init__(
        self,
        kind: Kind[R],
        context: ControllerContext,
        reporter: StatusReporter,
        reconciler: R | None = None,
        *,
        has_account: bool = False,
    ) -> None:
        """Initialise for one kind.

        ``reconciler`` is set if several controllers share an instance; otherwise a new one is
        created.  ``has_account`` is true if the objects record the account of their infrastructure.
        """
        self.reconciler = reconciler if reconciler is not None else kind.reconciler()
        """The author's reconciler, whose methods are passed to :meth:`call`."""
        self._kind = kind
        self._context = context
        self._reporter = reporter
        self._has_account = has_account
        concurrency = context.options.concurrency_of(kind.resource.kind)
        self._calls = AuthorCalls(self.reconciler, context.sessions, concurrency=concurrency)
        self._deletions: dict[NamespacedName, float] = {}

    def forget(self, key: NamespacedName) -> None:
        """Drop the recorded state of an object that no longer exists."""
        self._deletions.pop(key, None)
        self._calls.forget(key)

    async def decode_spec(self, patcher: Patcher) -> Any:
        """Return the typed spec; if it cannot be decoded, report the error and return None.

        A retry cannot help in that case: the caller must end the reconcile, and a change to the
        spec starts the next one.
        """
        try:
            return self._decode(patcher.obj)
        except DecodingError as error:
            await self._reporter.report_error(patcher, constants.REASON_INVALID_SPEC, str(error))
            return None

    def scope_fields(self, obj: JSON) -> ScopeFields:
        """Return the attributes that the scopes of all kinds share."""
        key = key_of(obj)
        return {
            "name": key.name,
            "namespace": key.namespace,
            "external_id": self._kind.external_id(obj),
            "logger": create_object_logger(self._kind, key),
            "_status": metadata.mapping(obj, "status"),
        }

    def delete_scope_fields(self, obj: JSON) -> DeleteScopeFields:
        """Return the attributes that all deletion scopes share.

        The first call for an object starts the count of its ``deletion_seconds``.
        """
        now = monotonic()
        return {
            **self.scope_fields(obj),
            "_spec": self._decode_or_error(obj),
            "deletion_seconds": now - self._deletions.setdefault(key_of(obj), now),
        }

    async def call(
        self, patcher: Patcher, hook: Callable[..., object], scope: object, expected: type[T]
    ) -> T | Waiting:
        """Call a reconciler method and return its result, an ``expected`` or a Waiting.

        NotAvailableError is converted to the Waiting that it contains.  Any other exception is
        reported in the conditions and raised again, except DeferredError, which is not a failure.
        """
        return await self.call_checked(
            patcher, hook, scope, lambda result: check_result(hook, result, expected)
        )

    async def call_checked(
        self,
        patcher: Patcher,
        hook: Callable[..., object],
        scope: object,
        check: Callable[[Any], T],
    ) -> T | Waiting:
        """Call a method as :meth:`call` does, and return what ``check`` returns for its result.

        ``check`` receives the method's result, and returns it or raises an error.
        """
        account = AccountCheck(self._kind, patcher)
        try:
            deletion = metadata.is_deleting(patcher.obj)
            with connect_scope(scope, self._context, patcher.obj):
                result = await self._calls.call(
                    key_of(patcher.obj),
                    hook,
                    scope,
                    deletion=deletion,
                    owner=describe_owner(patcher.obj),
                    check_account=account.run if self._has_account else None,
                )
            return check(result)
        except NotAvailableError as error:
            return error.waiting
        except DeferredError:
            raise
        except Exception as error:
            # The author's code has not failed if the runtime could not write.
            if not account.is_writing:
                await self._reporter.report_failure(patcher, error)
            raise

    def _decode(self, obj: JSON) -> Any:
        return decode(self._kind.spec, metadata.mapping(obj, "spec"), "spec")

    def _decode_or_error(self, obj: JSON) -> Any:
        # A deletion must continue even if the spec cannot be read; reading the scope's spec then
        # raises the error.
        try:
            return self._decode(obj)
        except DecodingError as error:
            return error
