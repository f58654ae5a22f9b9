"""Credentials, and the sessions that reconcilers open with them, such as SDK clients."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

from capsmith_runtime.api.serialization import decode
from capsmith_runtime.kube.hidden_values import hide_values

T = TypeVar("T")


class Credentials(Mapping[str, str]):
    """Content of an identity's Secret; its ``repr`` shows only the keys, not the values."""

    __slots__ = ("_spec", "_values", "identity", "identity_kind", "source")

    identity: str
    """Identity as ``name`` or ``namespace/name``, empty if the infrastructure cluster has none."""
    identity_kind: str
    """Kind of the identity, or an empty string if there is no identity."""
    source: Credentials | None
    """Credentials of the identity from which this one is derived, or None if it is not derived."""

    def __init__(
        self,
        values: Mapping[str, str] | None = None,
        identity: str = "",
        *,
        kind: str = "",
        spec: Mapping[str, Any] | None = None,
        source: Credentials | None = None,
    ) -> None:
        self._values = dict(values or {})
        self.identity = identity
        self.identity_kind = kind
        self._spec = spec or {}
        self.source = source

    def identity_spec(self, cls: type[T]) -> T:
        """Return the identity's spec as ``cls``, the type of its kind in ``_generated.api``.

        Raises DecodingError if the spec does not match ``cls``. If there are several kinds of
        identities, compare ``identity_kind`` first.
        """
        return decode(cls, self._spec, "identity")

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    # Type checkers allow a comparison with a dict only if the class itself has this method.
    def __eq__(self, other: object) -> bool:
        if isinstance(other, Credentials) and self._origin != other._origin:
            return False
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def _origin(self) -> tuple[str, str, Mapping[str, Any], Credentials | None]:
        return self.identity_kind, self.identity, self._spec, self.source

    def __repr__(self) -> str:
        # Values of Secrets must not reach the log with a scope or a traceback.
        return f"Credentials({', '.join(f'{key}=...' for key in sorted(self._values))})"


def qualified_identity(credentials: Credentials) -> str:
    """Return the kind and name of the identity with these credentials, or "" if there is none."""
    return f"{credentials.identity_kind} {credentials.identity}".strip()


def hide_credentials(credentials: object) -> None:
    """Hide the values of credentials, and of those from which they are derived, in messages.

    Anything else hides nothing.  This is about the current context, until the next call.
    """
    found: list[Credentials] = []
    while isinstance(credentials, Credentials):
        found.append(credentials)
        credentials = credentials.source
    hide_values(*found)


S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedChange:
    """A report that an object's infrastructure has changed; exactly one of the ids is set."""

    external_id: str = ""
    """External id of the object, or an empty string if the report names another id."""
    short_id: str = ""
    """Short form of the object's external id, or an empty string if the report names another id."""
    provider_id: str = ""
    """Provider id of the object, or an empty string if the report names another id."""


class Changes:
    """Accepts reports of changes to the infrastructure; see ``SessionFactory.watch``.

    All methods may be called from any thread.
    """

    def __init__(self, enqueue: Callable[[ReportedChange], None]) -> None:
        """Pass each report to ``enqueue``, which is called in the reporting thread."""
        self._enqueue = enqueue
        self._ended = threading.Event()

    def report(self, *, external_id: str = "", short_id: str = "", provider_id: str = "") -> None:
        """Reconcile the object with this id soon; pass one of its three ids.

        Several reports about the same object cause one reconcile if they arrive before it starts.
        Ids that no object has are ignored, and so are reports after the end of the session.
        """
        if not self._ended.is_set():
            ids = {"external_id": external_id, "short_id": short_id, "provider_id": provider_id}
            self._enqueue(ReportedChange(**ids))

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the session to end, and return whether it has ended.

        Blocks the thread, so do not call it from asynchronous code, which is cancelled instead.
        """
        return self._ended.wait(seconds)

    def end(self) -> None:
        """Ignore further reports, and make every :meth:`wait` return True."""
        self._ended.set()


class SessionFactory(ABC, Generic[S]):
    """Opens and closes each identity's session; methods may be ``def`` or ``async def``.

    The manager creates a single factory, without arguments, for all reconcilers that name the class
    in ``session_factory``. An identity's session is opened once, before the first call that needs
    it.  Several calls use it at the same time, ``def`` methods in different threads: if your SDK is
    not thread-safe, keep a client for each thread in the session.
    """

    idle_timeout: ClassVar[float] = 1800.0
    """Seconds without a call after which a session is closed."""
    rate: ClassVar[float] = 0.0
    """Maximum calls of the reconcilers' methods per second for each identity; 0 means unlimited.

    The option ``--hook-rate`` overrides it.
    """
    burst: ClassVar[int] = 0
    """Number of calls that may start together after an idle time; 0 means one second's worth."""

    @abstractmethod
    def open(self, credentials: Credentials) -> S | Awaitable[S]:
        """Open and return a new session.

        Called again with new credentials after the identity's Secret has changed, and with empty
        credentials for clusters without an identity.  An exception is reported in the Ready
        condition of all objects that need the session, and the call is retried with back-off.
        """

    def account(self, session: S) -> str | Awaitable[str]:
        """Return the account or project that a session's calls belong to; optional.

        Called once after each ``open``; an exception is handled like one that ``open`` raises. The
        account is recorded on the object before the first ``reconcile_normal`` of an infrastructure
        cluster, machine, pool or resource. If a later session belongs to another account, no method
        is called for the object, and Ready is False with the reason ``AccountChanged``.

        All keys of an account must give the same string, which must not be secret.  Return an empty
        string if the account is unknown: it is not recorded, and no method is called for objects
        that have recorded an account.  Do not override this method if the infrastructure never
        reports its account: then nothing is recorded or compared.
        """
        return ""

    def close(self, session: S) -> Awaitable[None] | None:
        """Release a session that no call uses any longer; does nothing by default."""
        return None

    def watch(self, session: S, changes: Changes) -> Awaitable[None] | None:
        """Report changes to the infrastructure while the session is open; optional.

        Runs in the background for as long as the session is open. When the session is closed, a
        coroutine is cancelled, whereas a function, which has its own thread, must return once
        ``changes.wait`` returns True. If this method returns earlier or raises an exception, it is
        called again with back-off. Changes in the meantime are lost, so begin by reporting
        everything, or keep ``requeue_after``.
        """
        return None

    def readyz(self) -> Awaitable[None] | None:
        """Raise an exception while the infrastructure as a whole cannot be used; optional.

        Called every 10 seconds, with a timeout of 5 seconds. While it fails, the manager is not
        ready: ``/readyz`` fails with this class's name.  The manager continues to reconcile, its
        webhooks are called as before, and it is not restarted.
        """
        return None


class SessionUser:
    """Base class for reconcilers whose methods may need a session."""

    session_factory: ClassVar[type[SessionFactory[Any]] | None] = None
    """The factory of the session in ``scope.session(...)``, or None if there is no session."""


class ScopeSession:
    """The session of a single call, or the reason why there is none."""

    __slots__ = ("_error", "_factory", "_session")

    def __init__(self, session: object = None) -> None:
        """Initialise with a session that is returned for any factory, as in unit tests.

        Without ``session``, call ``provide`` or ``fail`` first.
        """
        self._factory: type[SessionFactory[Any]] | None = None
        self._session = session
        self._error: Exception | None = None

    def provide(self, factory: type[SessionFactory[Any]], session: object) -> None:
        """Make ``get`` return this session from now on."""
        self._factory, self._session = factory, session

    def fail(self, factory: type[SessionFactory[Any]], error: Exception) -> None:
        """Make ``get`` raise this error from now on."""
        self._factory, self._error = factory, error

    def get(self, factory: type[SessionFactory[S]]) -> S:
        """Return the session to use in this call.

        Raises TypeError if the reconciler does not name this factory, and the error passed to
        ``fail`` if the session could not be opened.
        """
        # A session from a unit test has no factory, and is returned for any factory.
        is_of_test = self._factory is None and self._session is not None
        if not is_of_test and (self._factory is None or not issubclass(self._factory, factory)):
            found = "None" if self._factory is None else self._factory.__name__
            raise TypeError(
                f"session_factory of the reconciler is {found}: set it to {factory.__name__}"
            )
        if self._error is not None:
            raise self._error
        return cast(S, self._session)
