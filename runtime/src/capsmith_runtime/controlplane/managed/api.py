"""The author's API for managed control planes: two methods for each kind.

Methods may be ``def`` or ``async def``. A managed control plane has no Machines: a service runs it,
and the reconciler reports its endpoint and credentials.  The runtime derives everything else that
the contract requires: the kubeconfig Secret, and the fields of spec and status that core reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.kubernetes_version import normalize, sort_key
from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.reconcile.results import Deleted, State, Waiting
from capsmith_runtime.reconcile.scopes import DeleteScope, OptionalCredentialsScope, SessionScope
from capsmith_runtime.reconcile.sessions import Credentials, SessionUser

Spec = TypeVar("Spec")

RESERVED: Final = ("Available", "Deleting", "RollingOut")
"""Types of the conditions that only the runtime writes; authors must not return them."""


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class ManagedControlPlaneScope(SessionScope, Generic[Spec]):
    """Read-only view of a managed control plane, which its reconciler receives."""

    spec: Spec
    """The control plane's spec, as an instance of the generated class."""
    cluster: Cluster
    """The Cluster that the control plane belongs to."""
    version: str
    """The desired Kubernetes version, with the leading ``v``; empty without the feature
    ``version``."""
    control_plane_endpoint: Endpoint | None
    """The endpoint in the object's spec, set by the user or by an earlier reconcile."""
    initialized: bool
    """Whether an earlier reconcile has returned a state."""
    credentials: Credentials = field(default_factory=Credentials, repr=False)
    """Content of the identity's Secret, or empty without the feature ``credentials``."""

    def _session_credentials(self) -> Credentials:
        return self.credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedControlPlaneDeleteScope(DeleteScope[Spec], OptionalCredentialsScope):
    """Scope of ``reconcile_delete`` for a managed control plane.

    Its Cluster may already have been deleted.
    """

    cluster: Cluster | None
    """The Cluster that the control plane belongs to, or None if it no longer exists."""
    control_plane_endpoint: Endpoint | None
    """The endpoint in the object's spec, or None if it was never set."""
    _credentials: Credentials | Waiting = field(default_factory=Credentials, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCredentials:
    """The contents of a kubeconfig: a trusted CA certificate, and client credentials.

    The client has either a certificate with its key, or a token.
    """

    authority: bytes = b""
    """CA certificate in PEM, or empty to trust the system's root certificates."""
    certificate: bytes = b""
    """Client certificate in PEM, or empty if the client has a token."""
    key: bytes = field(default=b"", repr=False)
    """Private key of the client certificate in PEM, or empty if the client has a token."""
    token: str = field(default="", repr=False)
    """Bearer token, or an empty string if the client has a certificate."""

    def __post_init__(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise ValueError("a certificate needs its key, and a key its certificate")
        if bool(self.certificate) == bool(self.token):
            raise ValueError("either a certificate with its key, or a token")

    def __repr__(self) -> str:
        return "ClusterCredentials(...)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedControlPlaneState(State):
    """The observed state of an existing control plane.

    A control plane stays initialised after the first state is returned; ``ready=False`` with a
    reason and a message reports that its API server cannot be used at the moment.
    """

    endpoint: Endpoint
    """Address of the API server.  An endpoint that the user has set takes precedence."""
    version: str
    """The running Kubernetes version; until it is the desired one, an upgrade is in progress.

    It may be empty if the kind does not have the feature ``version``, so that the service decides.
    """
    kubeconfig: str | bytes | ClusterCredentials = field(repr=False)
    """Self-contained kubeconfig, without file paths, programs or plugins.

    The Secret is rewritten whenever this value changes, so return the same value for as long as it
    is valid (SEC-01).
    """

    def __post_init__(self) -> None:
        State.__post_init__(self)
        if self.version:
            sort_key(normalize(self.version))
        for condition in self.conditions:
            if condition.type in RESERVED:
                raise ValueError(f"condition {condition.type} is written for you")


class ManagedControlPlaneReconciler(SessionUser, ABC, Generic[Spec]):
    """Base class for reconcilers of managed control planes.

    Both methods are called repeatedly, even if nothing has changed, and again after a crash at any
    point. Look for existing resources (by ``external_id``) before you create any, and return the
    observed state. An exception is reported in the Available condition, and the call is retried.
    """

    @abstractmethod
    def reconcile_normal(
        self, control_plane: ManagedControlPlaneScope[Spec]
    ) -> ManagedControlPlaneState | Waiting | Awaitable[ManagedControlPlaneState | Waiting]:
        """Create or update the control plane, and return its observed state.

        Return Waiting as long as the control plane cannot be used.
        """

    @abstractmethod
    def reconcile_delete(
        self, control_plane: ManagedControlPlaneDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Delete the control plane, and return Deleted only once it is confirmed to be gone.

        Core deletes a control plane after its last worker is gone (CP-34).
        """
