"""The author's API of infrastructure clusters and machines: scopes, results and reconcilers."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from capsmith_runtime.api.serialization import decode
from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.model import Address, Endpoint, FailureDomain
from capsmith_runtime.kube.client import JSON, ResourceType
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient, wait_for
from capsmith_runtime.reconcile.results import (
    Deleted,
    NotAvailableError,
    State,
    Terminated,
    Waiting,
    check_failure_domains,
    check_machine,
)
from capsmith_runtime.reconcile.scopes import (
    BootstrapData,
    BootstrapReader,
    DeleteScope,
    SessionScope,
)
from capsmith_runtime.reconcile.sessions import Credentials, SessionUser

Spec = TypeVar("Spec")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClaimedAddress:
    """An address from an IP pool that was allocated for a machine (IP-12)."""

    address: str
    """The IP address, as text."""
    prefix: int
    """Length of the prefix of its network, such as 24."""
    gateway: str | None
    """None if the pool has no gateway."""
    pool: str
    """Name of the pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraClusterView:
    """Read-only view of the infrastructure cluster of a machine."""

    name: str
    namespace: str
    external_id: str
    """The ``external_id`` with which its reconciler is called."""
    control_plane_endpoint: Endpoint | None
    """The endpoint in its spec; None until it is set."""
    raw_spec: Mapping[str, Any]
    """Its spec as JSON; ``spec`` returns it typed."""
    raw_status: Mapping[str, Any] = field(default_factory=dict)
    """Its status as JSON; ``status`` returns it typed."""
    kind: str = ""
    """Its kind, for providers with several kinds of infrastructure clusters."""

    @property
    def short_id(self) -> str:
        """Return a short form of ``external_id`` for names and labels.

        It consists of 32 lower-case letters and digits and starts with a letter, as DNS labels
        require.
        """
        return external_id.shorten(self.external_id)

    def spec(self, cls: type[T]) -> T:
        """Return the spec as an instance of the generated class ``cls``."""
        return decode(cls, self.raw_spec, "spec")

    def status(self, cls: type[T]) -> T:
        """Return the status as an instance of the generated class ``cls``.

        A change of the status does not cause machines to be reconciled.
        """
        return decode(cls, self.raw_status, "status")


def create_owner_reference(resource: ResourceType, obj: JSON) -> Mapping[str, str]:
    """Return the fields of an entry in ``ownerReferences`` that identify its owner."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata.name(obj),
        "uid": metadata.uid(obj),
    }


@dataclass(frozen=True, kw_only=True)
class OwnerScope(SessionScope):
    """Scope of an object that may own other objects."""

    _reference: Mapping[str, str] = field(default_factory=dict, repr=False)

    def owner_reference(self, *, controller: bool = True) -> dict[str, Any]:
        """Return an entry for ``ownerReferences`` of an object that this object owns.

        The other object is deleted together with this one.  If its kind implements Resource, a
        change of it reconciles this object.  At most one of its owners may be its ``controller``.
        """
        return {**self._reference, "controller": controller, "blockOwnerDeletion": True}


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class InfraScope(OwnerScope, Generic[Spec]):
    """Attributes that all scopes of ``reconcile_normal`` share."""

    spec: Spec
    """The spec, as an instance of the generated class."""
    cluster: Cluster
    """The Cluster that the object belongs to."""
    credentials: Credentials = field(repr=False)
    """The content of the identity's Secret; empty without an identity."""

    def _session_credentials(self) -> Credentials:
        return self.credentials


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class InfraClusterScope(InfraScope[Spec]):
    """Scope of ``reconcile_normal`` of an infrastructure cluster."""

    control_plane_endpoint: Endpoint | None
    """The endpoint in the object's spec: set by the user, or returned by you earlier."""
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """The workload cluster, for kinds with the feature ``workloadClient``.

    Raises NotAvailableError until ``cluster.control_plane_initialized`` is true: check that
    first if a control plane machine would otherwise wait for itself.
    """


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class InfraMachineScope(InfraScope[Spec]):
    """Scope of ``reconcile_normal`` of an infrastructure machine."""

    machine: Machine
    """The Machine that the infrastructure machine belongs to."""
    infra_cluster: InfraClusterView | None
    """None if another provider manages the infrastructure of the cluster."""
    provider_id: str | None
    """The id that you returned earlier; None before the machine was first provisioned.

    A user who creates the object can set it to any other.
    """
    failure_domain: str | None
    """The failure domain in which to create the machine, if it was assigned one."""
    is_control_plane: bool
    """Whether it is a control plane machine."""
    is_provisioned: bool = False
    """Whether it was reported as provisioned since it was created or moved."""
    ip_addresses: tuple[ClaimedAddress, ...] = ()
    """One address for each pool in ``spec.addressesFromPools``, in the same order."""
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """The workload cluster, for kinds with the feature ``workloadClient``.

    Raises NotAvailableError until ``cluster.control_plane_initialized`` is true: check that
    first if a control plane machine would otherwise wait for itself.
    """
    _bootstrap: BootstrapReader = field(repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    def bootstrap_data(self) -> BootstrapData:
        """Read the bootstrap data, in synchronous code; each call is a request.

        Raises NotAvailableError if the Secret does not exist; let it propagate, to wait for the
        Secret.
        """
        return wait_for(self._bootstrap, self._loop)

    async def bootstrap_data_async(self) -> BootstrapData:
        """Read the bootstrap data, in asynchronous code; see ``bootstrap_data``."""
        return await self._bootstrap()


# Without slots: two base classes with slots cannot be combined.
@dataclass(frozen=True, kw_only=True)
class OptionalCredentialsScope(SessionScope):
    """Scope of a method that is called even if the credentials are not available."""

    _credentials: Credentials | Waiting = field(repr=False)

    @property
    def credentials(self) -> Credentials:
        """Return the credentials.

        Raises NotAvailableError if they are not available; let it propagate, to wait for them.
        """
        if isinstance(self._credentials, Waiting):
            raise NotAvailableError(self._credentials)
        return self._credentials

    def _session_credentials(self) -> Credentials | Waiting:
        return self._credentials


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class InfraMachineTemplateScope(OptionalCredentialsScope, Generic[Spec]):
    """Scope of ``capacity``: a machine template, and the cluster that uses it."""

    spec: Spec
    """The spec of machines that are created from the template."""
    cluster: Cluster | None
    """None for a template that no Cluster owns, such as one of a ClusterClass."""
    infra_cluster: InfraClusterView | None
    """None without ``cluster``, or if another provider manages its infrastructure."""


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class InfraDeleteScope(DeleteScope[Spec], OptionalCredentialsScope):
    """Scope of a deletion, which must work even if the credentials are not available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraClusterDeleteScope(InfraDeleteScope[Spec]):
    """Scope of ``reconcile_delete`` of an infrastructure cluster.

    Its Cluster may have been deleted already.
    """

    cluster: Cluster | None
    """None if it no longer exists."""
    control_plane_endpoint: Endpoint | None
    """The endpoint in the object's spec; None if it was never set."""
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """The workload cluster, for kinds with the feature ``workloadClient``.

    Raises NotAvailableError if the Cluster no longer exists, or was never initialized.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachineDeleteScope(InfraDeleteScope[Spec]):
    """Scope of ``reconcile_delete`` of an infrastructure machine.

    Its Machine and its Cluster may have been deleted already.
    """

    cluster: Cluster | None
    """None if it no longer exists."""
    machine: Machine | None
    """None if it no longer exists."""
    infra_cluster: InfraClusterView | None
    """None if it no longer exists, or if another provider manages it."""
    provider_id: str | None
    """None if it was never provisioned.  The server may still exist: look it up by external id.

    A user may have set it: delete only what has the external id.
    """
    is_control_plane: bool
    """Whether it is a control plane machine."""
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """The workload cluster, for kinds with the feature ``workloadClient``.

    Raises NotAvailableError if the Cluster no longer exists, or was never initialized.
    """


_QUANTITY: Final = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraClusterState(State):
    """State of the existing infrastructure of a cluster.

    A cluster stays provisioned after the first state; report a problem with ``ready=False``, a
    reason and a message.
    """

    control_plane_endpoint: Endpoint | None = None
    """Endpoint of the control plane.  An endpoint that the user has set is kept."""
    failure_domains: Sequence[FailureDomain] = ()
    """At most 100, each name once."""

    def __post_init__(self) -> None:
        State.__post_init__(self)
        check_failure_domains(self.failure_domains)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachineState(State):
    """State of an existing machine.

    A machine stays provisioned after the first state; report a problem with ``ready=False``, a
    reason and a message.
    """

    provider_id: str
    """Exactly the provider id of the Node; it never changes for a machine."""
    addresses: Sequence[Address] = ()
    """At most 256."""
    failure_domain: str | None = None
    """The failure domain in which the machine was created."""
    interruptible: bool = False
    """Whether the infrastructure may delete it at any time, like a spot instance."""

    def __post_init__(self) -> None:
        State.__post_init__(self)
        check_machine(self.provider_id, self.addresses)
        if self.failure_domain is not None and not 1 <= len(self.failure_domain) <= 256:
            raise ValueError("failure_domain must have 1 to 256 characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCapacity:
    """Capacity of one machine, which the autoscaler uses to scale up from zero (IM-16)."""

    resources: Mapping[str, str]
    """Kubernetes quantities: ``{"cpu": "4", "memory": "16Gi"}``."""
    architecture: Literal["amd64", "arm64", "s390x", "ppc64le"] | None = None
    """Architecture of its CPU; None if unknown."""
    operating_system: str | None = None
    """Such as ``linux``; None if unknown."""

    def __post_init__(self) -> None:
        for name, quantity in self.resources.items():
            if not _QUANTITY.fullmatch(quantity):
                raise ValueError(f"{name}: {quantity!r} is not a Kubernetes quantity")


class InfraClusterReconciler(SessionUser, ABC, Generic[Spec]):
    """Manages the resources that the machines of a cluster share, such as load balancers."""

    @abstractmethod
    def reconcile_normal(
        self, cluster: InfraClusterScope[Spec]
    ) -> InfraClusterState | Waiting | Awaitable[InfraClusterState | Waiting]:
        """Create or update the infrastructure and return its state."""

    @abstractmethod
    def reconcile_delete(
        self, cluster: InfraClusterDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Delete the infrastructure; return Deleted only when it no longer exists."""


class InfraMachineReconciler(SessionUser, ABC, Generic[Spec]):
    """Manages the servers of Machines."""

    # True for code that was written with capsmith 0.1: see capsmith_runtime.legacy.
    _capacity_gets_spec: ClassVar[bool] = False

    @abstractmethod
    def reconcile_normal(
        self, machine: InfraMachineScope[Spec]
    ) -> (
        InfraMachineState
        | Waiting
        | Terminated
        | Awaitable[InfraMachineState | Waiting | Terminated]
    ):
        """Create or update the server and return its state.

        Never create a second server for a machine that has a provider id: return Terminated
        instead.
        """

    @abstractmethod
    def reconcile_delete(
        self, machine: InfraMachineDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Delete the server; return Deleted only when it no longer exists."""

    # Any, since an override that was written with capsmith 0.1 takes another type.
    def capacity(
        self, template: Any
    ) -> MachineCapacity | Waiting | Awaitable[MachineCapacity | Waiting | None] | None:
        """Return the capacity of a machine that is created from a template; None if unknown.

        ``template`` is an ``InfraMachineTemplateScope`` of the kind's spec.  Called only for kinds
        with the feature ``capacity``: once for each template, and again when the template or its
        cluster has changed.
        """
        return None
