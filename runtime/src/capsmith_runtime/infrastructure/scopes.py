"""Arguments of infrastructure reconcilers: one object and the objects that it refers to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from capsmith_runtime.api.serialization import decode
from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.kube.client import JSON, ResourceType
from capsmith_runtime.reconcile.credentials import Credentials
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.scopes import (
    BootstrapData,
    BootstrapReader,
    DeleteScope,
    SessionScope,
)
from capsmith_runtime.reconcile.waiting import wait_for

Spec = TypeVar("Spec")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClaimedAddress:
    """An address that a machine has from an IP pool (IP-12)."""

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
        """Return a short form of ``external_id``, for names and labels.

        It has 32 lower-case letters and digits and starts with a letter: a DNS label.
        """
        return external_id.shorten(self.external_id)

    def spec(self, cls: type[T]) -> T:
        """Return its spec as an instance of the generated class."""
        return decode(cls, self.raw_spec, "spec")

    def status(self, cls: type[T]) -> T:
        """Return its status as an instance of the generated class.

        A change of the status enqueues no machine.
        """
        return decode(cls, self.raw_status, "status")


def reference_to(resource: ResourceType, obj: JSON) -> Mapping[str, str]:
    """Return what an entry of ``ownerReferences`` says of its owner."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata.name(obj),
        "uid": metadata.uid(obj),
    }


@dataclass(frozen=True, kw_only=True)
class OwnerScope(SessionScope):
    """Scope of an object that may own others."""

    _reference: Mapping[str, str] = field(default_factory=dict, repr=False)

    def owner_reference(self, *, controller: bool = True) -> dict[str, Any]:
        """Return an entry for ``ownerReferences`` of an object that this object owns.

        The other object is deleted with this one.  If it is of a kind that implements Resource, a
        change of it reconciles this object.  Of its owners at most one is its ``controller``.
        """
        return {**self._reference, "controller": controller, "blockOwnerDeletion": True}


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class InfraScope(OwnerScope, Generic[Spec]):
    """Attributes that the scopes of ``reconcile_normal`` share."""

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
    """The id that you returned earlier; None before the machine was first provisioned."""
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
        """Read the bootstrap data, in synchronous code.  Each call is a request.

        Raises NotAvailableError if the Secret does not exist; let it pass, to wait for the Secret.
        """
        return wait_for(self._bootstrap, self._loop)

    async def bootstrap_data_async(self) -> BootstrapData:
        """Read the bootstrap data, in asynchronous code."""
        return await self._bootstrap()


# Without slots: two base classes with slots cannot be combined.
@dataclass(frozen=True, kw_only=True)
class OptionalCredentialsScope(SessionScope):
    """Scope of a method that is called even if the credentials cannot be read."""

    _credentials: Credentials | Waiting = field(repr=False)

    @property
    def credentials(self) -> Credentials:
        """Return the credentials.

        Raises NotAvailableError if they are not available; let it pass, to wait for them.
        """
        if isinstance(self._credentials, Waiting):
            raise NotAvailableError(self._credentials)
        return self._credentials

    def _session_credentials(self) -> Credentials | Waiting:
        return self._credentials


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class InfraMachineTemplateScope(OptionalCredentialsScope, Generic[Spec]):
    """Scope of ``capacity``: a template of machines, and the cluster that uses it."""

    spec: Spec
    """The spec of machines that are created from the template."""
    cluster: Cluster | None
    """None for a template that no Cluster owns, such as one of a ClusterClass."""
    infra_cluster: InfraClusterView | None
    """None without ``cluster``, or if another provider manages its infrastructure."""


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class InfraDeleteScope(DeleteScope[Spec], OptionalCredentialsScope):
    """Scope of a deletion, which must work even if the credentials cannot be read."""


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
    """None if it was never provisioned.  The server may still exist: look it up by external id."""
    is_control_plane: bool
    """Whether it is a control plane machine."""
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """The workload cluster, for kinds with the feature ``workloadClient``.

    Raises NotAvailableError if the Cluster no longer exists, or was never initialized.
    """
