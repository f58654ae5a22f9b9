"""Reconcilers' arguments: an object, and the objects that it refers to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeVar

from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import external_id
from capsmith_runtime.kube.log import Logger
from capsmith_runtime.reconcile.events import Events
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.sessions import Credentials, ScopeSession, SessionFactory

Spec = TypeVar("Spec")
T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class BootstrapData:
    """The data that a machine runs on first boot, and their format."""

    value: bytes = field(repr=False)
    """The data as bytes, which may be compressed."""
    format: str
    """Format of the data, ``cloud-config`` or ``ignition``, as set by the bootstrap provider."""

    @property
    def text(self) -> str:
        """Return the data decoded as UTF-8.

        Raises ValueError if they are not UTF-8, for example because they are compressed.
        """
        try:
            return self.value.decode()
        except UnicodeDecodeError:
            # That exception contains the data, and its repr shows them.
            raise ValueError("the bootstrap data are not UTF-8 text: use value") from None


BootstrapReader = Callable[[], Awaitable[BootstrapData]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Base class for scopes, which are the arguments of reconcilers' methods."""

    name: str
    namespace: str
    external_id: str
    """Unique and stable id of the object's infrastructure, which survives ``clusterctl move``.

    Tag each resource that you create with this id, and look up resources by it before you create
    any.
    """
    logger: Logger
    """Logger that adds the object and the reconcile to each record.

    Keyword arguments become fields of the record.
    """
    events: Events = field(default_factory=Events, repr=False, compare=False)
    """Recorder of events about the object, which ``kubectl describe`` shows."""
    client: KubernetesClient = field(default_factory=KubernetesClient, repr=False, compare=False)
    """Client for other objects, with the permissions that provider.yaml declares."""
    _status: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def short_id(self) -> str:
        """Return a short form of ``external_id`` for names and labels.

        The short form has 32 lower-case letters and digits and starts with a letter, as DNS labels
        require.
        """
        return external_id.shorten(self.external_id)

    def status(self, cls: type[T]) -> T:
        """Return the status that the reconciler returned last, as an instance of ``cls``.

        ``cls`` is the generated Status class.  Its fields are empty until the first status is
        returned, and again after ``clusterctl move``, which drops the status.  Raises DecodingError
        if the status cannot be decoded.
        """
        return decode(cls, self._status, "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionScope(Scope):
    """Scope of a reconciler that may have a session, such as an SDK's client."""

    _session: ScopeSession = field(default_factory=ScopeSession, repr=False, compare=False)

    def session(self, factory: type[SessionFactory[S]]) -> S:
        """Return the identity's session, which concurrent calls share.

        ``factory`` is the class that the reconciler names in ``session_factory``.  In a deletion,
        raises NotAvailableError if there are no credentials, and ReconcileError if the session
        could not be opened; do not catch either.
        """
        return self._session.get(factory)

    def _session_credentials(self) -> Credentials | Waiting:
        """Return the credentials for opening the session."""
        return Credentials()


# No slots, because two base classes with slots cannot be combined.
@dataclass(frozen=True, kw_only=True)
class OptionalCredentialsScope(SessionScope):
    """Scope of a method that is called even if no credentials are available."""

    _credentials: Credentials | Waiting = field(repr=False)

    @property
    def credentials(self) -> Credentials:
        """Return the credentials.

        Raises NotAvailableError if there are none yet; do not catch it, so that the object waits
        for them.
        """
        if isinstance(self._credentials, Waiting):
            raise NotAvailableError(self._credentials)
        return self._credentials

    def _session_credentials(self) -> Credentials | Waiting:
        return self._credentials


def read_credentials(scope: object) -> Credentials | Waiting:
    """Return the credentials for the session of a scope; they are empty if it has no session."""
    return scope._session_credentials() if isinstance(scope, SessionScope) else Credentials()


class ScopeFields(TypedDict):
    """Keyword arguments of :class:`Scope`."""

    name: str
    namespace: str
    external_id: str
    logger: Logger
    _status: Mapping[str, Any]


class DeleteScopeFields(ScopeFields):
    """Keyword arguments of :class:`DeleteScope`."""

    _spec: Any
    deletion_seconds: float


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class DeleteScope(SessionScope, Generic[Spec]):
    """Scope of ``reconcile_delete``, which must work even if the spec cannot be decoded."""

    _spec: Spec | DecodingError
    deletion_seconds: float = 0.0
    """Seconds since this manager learned that the object is being deleted.

    Nothing has been created for the object in this time.  The count restarts at 0 when a manager
    starts or takes over, and does not depend on wall clocks.
    """

    @property
    def spec(self) -> Spec:
        """Return the typed spec.

        Raises DecodingError if the spec cannot be decoded.
        """
        if isinstance(self._spec, DecodingError):
            raise self._spec
        return self._spec
