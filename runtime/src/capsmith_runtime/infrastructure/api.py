"""The author's API for infrastructure clusters and machines: scopes, results and reconcilers."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeVar

from capsmith_runtime.api.serialization import decode
from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.model import Address, Endpoint, FailureDomain
from capsmith_runtime.errors import ReconcileError
from capsmith_runtime.kube.client import JSON, ResourceType
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient, wait_for
from capsmith_runtime.reconcile.results import (
    Deleted,
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
    OptionalCredentialsScope,
    SessionScope,
)
from capsmith_runtime.reconcile.sessions import Credentials, SessionUser

Spec = TypeVar("Spec")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClaimedAddress:
    """An address that an IP pool allocated for a machine (IP-12)."""

    address: str
    """The IP address, as a string without the prefix length."""
    prefix: int
    """Prefix length of the address's network, such as 24."""
    gateway: str | None
    """The pool's gateway, or None if the pool has none."""
    pool: str
    """Name of the pool that the address was allocated from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraClusterView:
    """Read-only view of a machine's infrastructure cluster."""

    name: str
    namespace: str
    external_id: str
    """The infrastructure cluster's external id, which its own reconciler also receives."""
    control_plane_endpoint: Endpoint | None
    """The endpoint in the infrastructure cluster's spec, or None until it is set."""
    raw_spec: Mapping[str, Any]
    """The infrastructure cluster's spec as JSON; the method ``spec`` returns it typed."""
    raw_status: Mapping[str, Any] = field(default_factory=dict)
    """The infrastructure cluster's status as JSON; the method ``status`` returns it typed."""
    kind: str = ""
    """Kind of the infrastructure cluster, for providers that serve several kinds."""

    @property
    def short_id(self) -> str:
        """Return a short form of ``external_id`` for names and labels.

        The short form has 32 lower-case letters and digits and starts with a letter, as DNS labels
        require.
        """
        return external_id.shorten(self.external_id)

    def spec(self, cls: type[T]) -> T:
        """Return the spec as an instance of the generated class ``cls``."""
        return decode(cls, self.raw_spec, "spec")

    def status(self, cls: type[T]) -> T:
        """Return the status as an instance of the generated class ``cls``.

        Changes to the status do not trigger a reconcile of the machines.
        """
        return decode(cls, self.raw_status, "status")


class WatchedMachines(Enum):
    """Selects the machines in an infrastructure cluster's scope, whose changes reconcile it."""

    NONE = "none"
    """No machines; the default."""
    CONTROL_PLANE = "control-plane"
    """The control plane's machines."""
    ALL = "all"
    """All machines, including those in machine pools with Machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachineView:
    """Read-only view of a machine for its infrastructure cluster's reconciler."""

    name: str
    namespace: str
    external_id: str
    """The machine's external id, which its own reconciler also receives."""
    provider_id: str | None = None
    """The machine's provider id, or None until its reconciler has returned one."""
    is_provisioned: bool = False
    """Whether the machine's reconciler has returned a state since the object was created or moved.
    """
    addresses: tuple[Address, ...] = ()
    """The addresses that the machine's reconciler last returned."""
    is_control_plane: bool = False
    """Whether the machine belongs to the control plane."""
    deleting: bool = False
    """Whether the machine is being deleted; its server may still exist."""
    raw_spec: Mapping[str, Any] = field(default_factory=dict)
    """The machine's spec as JSON; the method ``spec`` returns it typed."""
    raw_status: Mapping[str, Any] = field(default_factory=dict)
    """The machine's status as JSON; the method ``status`` returns it typed."""
    kind: str = ""
    """Kind of the machine, for providers that serve several kinds."""

    @property
    def short_id(self) -> str:
        """Return the short form of ``external_id`` for names and labels."""
        return external_id.shorten(self.external_id)

    def spec(self, cls: type[T]) -> T:
        """Return the spec as an instance of the generated class ``cls``."""
        return decode(cls, self.raw_spec, "spec")

    def status(self, cls: type[T]) -> T:
        """Return the status as an instance of the generated class ``cls``.

        Changes to your own status fields do not trigger a reconcile of the cluster.
        """
        return decode(cls, self.raw_status, "status")


class _HasInfraCluster(Protocol):
    @property
    def infra_cluster(self) -> InfraClusterView | None: ...


class InfraClusterUser:
    """A scope for an object that uses its Cluster's infrastructure cluster."""

    def require_infra_cluster(self: _HasInfraCluster) -> InfraClusterView:
        """Return ``infra_cluster``.

        If it is None, raises ReconcileError, which the Ready condition reports.
        """
        if self.infra_cluster is None:
            message = "the Cluster has no infrastructure cluster of this provider"
            raise ReconcileError("InfraClusterNotFound", message)
        return self.infra_cluster


def create_owner_reference(resource: ResourceType, obj: JSON) -> Mapping[str, str]:
    """Return the ``ownerReferences`` fields that identify ``obj`` as an owner.

    ``resource`` is the resource type of ``obj``.
    """
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
        """Return an ``ownerReferences`` entry for objects that this object owns.

        Kubernetes deletes the owned object together with this one.  If the owned object's kind
        implements Resource, changes to it reconcile this object.  An object can have only one owner
        with ``controller`` set.
        """
        return {**self._reference, "controller": controller, "blockOwnerDeletion": True}


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class InfraScope(OwnerScope, Generic[Spec]):
    """Attributes that the scopes of all ``reconcile_normal`` methods share."""

    spec: Spec
    """The object's spec, as an instance of the generated class."""
    cluster: Cluster
    """The Cluster that the object belongs to."""
    credentials: Credentials = field(repr=False)
    """Content of the identity's Secret, or empty if the cluster uses no identity."""

    def _session_credentials(self) -> Credentials:
        return self.credentials


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class InfraClusterScope(InfraScope[Spec]):
    """Scope of ``reconcile_normal`` for an infrastructure cluster."""

    control_plane_endpoint: Endpoint | None
    """The endpoint in the object's spec, set by the user or returned earlier by the reconciler."""
    machines: tuple[InfraMachineView, ...] = ()
    """The machines that the reconciler's ``watched_machines`` selects, sorted by kind and name.

    Machines that are being deleted are included until they are gone. Machines without a Machine of
    this Cluster as their owner are left out, as are machines that claim another object's ids.
    """
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """Workload cluster client, for kinds with the feature ``workloadClient``.

    Its methods raise NotAvailableError until ``cluster.control_plane_initialized`` is true.  Check
    that attribute first if a control plane machine would otherwise wait for itself.
    """


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class InfraMachineScope(InfraScope[Spec], InfraClusterUser):
    """Scope of ``reconcile_normal`` for an infrastructure machine."""

    machine: Machine
    """The Machine that owns the infrastructure machine."""
    infra_cluster: InfraClusterView | None
    """The machine's infrastructure cluster, or None if another provider manages it."""
    provider_id: str | None
    """The provider id that the reconciler has returned, or None until the machine is provisioned.

    Do not trust it: a user who creates the object can set any provider id.
    """
    failure_domain: str | None
    """The failure domain in which to create the machine, or None if it may be created in any."""
    is_control_plane: bool
    """Whether the machine belongs to the control plane."""
    is_provisioned: bool = False
    """Whether the reconciler has returned a state since the object was created or moved."""
    ip_addresses: tuple[ClaimedAddress, ...] = ()
    """Claimed addresses, one for each pool in ``spec.addressesFromPools``, in the same order."""
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """Workload cluster client, for kinds with the feature ``workloadClient``.

    Its methods raise NotAvailableError until ``cluster.control_plane_initialized`` is true.  Check
    that attribute first if a control plane machine would otherwise wait for itself.
    """
    _bootstrap: BootstrapReader = field(repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    def bootstrap_data(self) -> BootstrapData:
        """Return the bootstrap data; use this method in synchronous code.

        Each call sends a request to the API server and blocks the thread. Raises NotAvailableError
        if the Secret does not exist; do not catch it, so that the machine waits for the Secret.
        """
        return wait_for(self._bootstrap, self._loop)

    async def bootstrap_data_async(self) -> BootstrapData:
        """Return the bootstrap data without blocking the event loop; see ``bootstrap_data``."""
        return await self._bootstrap()


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class InfraMachineTemplateScope(OptionalCredentialsScope, InfraClusterUser, Generic[Spec]):
    """Scope of ``capacity``: a machine template and the cluster that uses it."""

    spec: Spec
    """The spec of machines that are created from the template."""
    cluster: Cluster | None
    """The Cluster that owns the template, or None if no Cluster does, as in a ClusterClass."""
    infra_cluster: InfraClusterView | None
    """The Cluster's infrastructure cluster.

    None if there is no Cluster, or if another provider manages its infrastructure.
    """


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class InfraDeleteScope(DeleteScope[Spec], OptionalCredentialsScope):
    """Scope of ``reconcile_delete``, which must work even if no credentials are available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraClusterDeleteScope(InfraDeleteScope[Spec]):
    """Scope of ``reconcile_delete`` for an infrastructure cluster.

    The owning Cluster may already have been deleted.
    """

    cluster: Cluster | None
    """The Cluster that owns the object, or None if it no longer exists."""
    control_plane_endpoint: Endpoint | None
    """The endpoint in the object's spec, or None if it was never set."""
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """Workload cluster client, for kinds with the feature ``workloadClient``.

    Its methods raise NotAvailableError if the Cluster no longer exists or was never initialized.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachineDeleteScope(InfraDeleteScope[Spec], InfraClusterUser):
    """Scope of ``reconcile_delete`` for an infrastructure machine.

    The Machine and the Cluster may already have been deleted.
    """

    cluster: Cluster | None
    """The Cluster that the machine belongs to, or None if it no longer exists."""
    machine: Machine | None
    """The Machine that owns the infrastructure machine, or None if it no longer exists."""
    infra_cluster: InfraClusterView | None
    """The infrastructure cluster, or None if it no longer exists or another provider manages it."""
    provider_id: str | None
    """The machine's provider id, or None if it was never provisioned.

    The server may exist even without a provider id, so look it up by external id.  A user can set
    any provider id: delete only the server that has the external id.
    """
    is_control_plane: bool
    """Whether the machine belongs to the control plane."""
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """Workload cluster client, for kinds with the feature ``workloadClient``.

    Its methods raise NotAvailableError if the Cluster no longer exists or was never initialized.
    """


_QUANTITY: Final = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraClusterState(State):
    """State of a cluster's existing infrastructure.

    Once you have returned a state, the cluster stays provisioned. Report later problems with
    ``ready=False``, a reason and a message.
    """

    control_plane_endpoint: Endpoint | None = None
    """The control plane's endpoint. An endpoint that the user has set takes precedence."""
    failure_domains: Sequence[FailureDomain] = ()
    """The cluster's failure domains: at most 100, with unique names."""

    def __post_init__(self) -> None:
        State.__post_init__(self)
        check_failure_domains(self.failure_domains)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachineState(State):
    """State of an existing machine.

    Once you have returned a state, the machine stays provisioned. Report later problems with
    ``ready=False``, a reason and a message.
    """

    provider_id: str
    """The machine's provider id, identical to the Node's ``spec.providerID``.

    It must never change.
    """
    addresses: Sequence[Address] = ()
    """The machine's addresses, at most 256."""
    failure_domain: str | None = None
    """The failure domain in which the machine was created, or None if it has none.

    Read it from the server, not from the scope, so that a machine in another failure domain than
    its Machine requires is noticed: such a machine gets an event ``FailureDomainMismatch``.
    """
    interruptible: bool = False
    """Whether the infrastructure may delete the machine at any time, as with spot instances."""

    def __post_init__(self) -> None:
        State.__post_init__(self)
        check_machine(self.provider_id, self.addresses)
        if self.failure_domain is not None and not 1 <= len(self.failure_domain) <= 256:
            raise ValueError("failure_domain must have 1 to 256 characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCapacity:
    """Capacity of a single machine, which the autoscaler uses to scale up from zero (IM-16)."""

    resources: Mapping[str, str]
    """Amount of each resource as a Kubernetes quantity: ``{"cpu": "4", "memory": "16Gi"}``."""
    architecture: Literal["amd64", "arm64", "s390x", "ppc64le"] | None = None
    """The machine's CPU architecture, or None if unknown."""
    operating_system: str | None = None
    """The machine's operating system, such as ``linux``, or None if unknown."""

    def __post_init__(self) -> None:
        for name, quantity in self.resources.items():
            if not _QUANTITY.fullmatch(quantity):
                raise ValueError(f"{name}: {quantity!r} is not a Kubernetes quantity")


class InfraClusterReconciler(SessionUser, ABC, Generic[Spec]):
    """Manages the resources that a cluster's machines share, such as load balancers."""

    watched_machines: ClassVar[WatchedMachines] = WatchedMachines.NONE
    """Selects the machines in ``InfraClusterScope.machines``.

    ``reconcile_normal`` is called again after such a machine is added, becomes provisioned, changes
    its spec or its addresses, starts to be deleted, or is gone. Until the cluster is provisioned,
    do not wait for machines, because they wait for the cluster.
    """

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
    """Base class for reconcilers that manage a server for each Machine."""

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

        If ``machine`` has a provider id but its server is gone, return Terminated, and never create
        a second server.
        """

    @abstractmethod
    def reconcile_delete(
        self, machine: InfraMachineDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Delete the server; return Deleted only when it no longer exists."""

    # Any, because an override that was written with capsmith 0.1 takes another type.
    def capacity(
        self, template: Any
    ) -> MachineCapacity | Waiting | Awaitable[MachineCapacity | Waiting | None] | None:
        """Return the capacity of machines created from ``template``, or None if unknown.

        ``template`` is an ``InfraMachineTemplateScope`` with the kind's spec.  The runtime calls
        this method only for kinds with the feature ``capacity``: once for each template, and again
        after the template or its cluster has changed.
        """
        return None
