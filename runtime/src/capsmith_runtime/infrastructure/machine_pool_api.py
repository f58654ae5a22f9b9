"""The author's API of machine pools.

There are two types of pools.  A pool without Machines is one resource of the infrastructure, such
as a scaling group: the author's reconciler manages it and lists its machines.  A pool with
Machines consists of the provider's own infrastructure machines, which the runtime creates and
deletes; the author decides only on their number, and only while another autoscaler manages the
replicas.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.contract.model import Address
from capsmith_runtime.infrastructure.api import InfraClusterView, InfraDeleteScope, InfraScope
from capsmith_runtime.reconcile.kubernetes_client import wait_for
from capsmith_runtime.reconcile.results import (
    MAX_ADDRESSES,
    MAX_PROVIDER_ID,
    Deleted,
    State,
    Waiting,
)
from capsmith_runtime.reconcile.scopes import (
    BootstrapData,
    BootstrapReader,
)
from capsmith_runtime.reconcile.sessions import SessionUser

Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One machine of a pool without Machines."""

    provider_id: str
    """Exactly the provider id of the Node."""
    name: str = ""
    """Its name in the infrastructure."""
    addresses: Sequence[Address] = ()
    """Its addresses, at most 256."""
    version: str | None = None
    """Its Kubernetes version, if known."""
    ready: bool = True
    """Whether it runs; machines that do not are not counted as ready."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.provider_id) <= MAX_PROVIDER_ID:
            raise ValueError(f"provider_id must have 1 to {MAX_PROVIDER_ID} characters")
        if len(self.name) > 256 or len(self.version or "") > 256:
            raise ValueError("name and version must have at most 256 characters")
        if len(self.addresses) > MAX_ADDRESSES:
            raise ValueError(f"an instance may have at most {MAX_ADDRESSES} addresses")


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachinePoolState(State):
    """State of an existing pool: its machines, in any order.

    A pool stays provisioned after the first state, also while it is scaled; report a problem with
    ``ready=False``, a reason and a message.  A machine that is no longer listed loses its Node: if
    you cannot read the machines from the infrastructure, raise an exception.
    """

    instances: Sequence[Instance] = ()
    """The machines of the pool, each ``provider_id`` once."""
    replicas: int | None = None
    """Size that the infrastructure's own autoscaler requests; by default the number of instances.

    It becomes MachinePool.spec.replicas while ``replicas_managed_elsewhere`` is true (MP-17).
    """
    provider_id: str | None = None
    """Id of the pool itself, for display (MP-05)."""

    def __post_init__(self) -> None:
        State.__post_init__(self)
        if self.provider_id is not None and not 1 <= len(self.provider_id) <= MAX_PROVIDER_ID:
            raise ValueError(f"provider_id must have 1 to {MAX_PROVIDER_ID} characters")
        if self.replicas is not None and self.replicas < 0:
            raise ValueError("replicas cannot be negative")
        ids = {instance.provider_id for instance in self.instances}
        if len(ids) < len(self.instances):
            raise ValueError("instances must contain each provider_id once")


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class InfraMachinePoolScope(InfraScope[Spec]):
    """Scope of ``reconcile_normal`` of a machine pool."""

    machine_pool: MachinePool
    """The MachinePool that the pool belongs to."""
    infra_cluster: InfraClusterView | None
    """None if another provider manages the infrastructure of the cluster."""
    provider_ids: tuple[str, ...]
    """The provider ids of the machines that you returned earlier; a user may have set others."""
    _bootstrap: BootstrapReader = field(repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    @property
    def replicas(self) -> int:
        """Return the desired number of machines.

        While ``replicas_managed_elsewhere`` is true, this is only the initial size of a new pool.
        """
        return self.machine_pool.replicas

    @property
    def replicas_managed_elsewhere(self) -> bool:
        """Return whether the infrastructure's own autoscaler sets the size (MP-17)."""
        return self.machine_pool.replicas_managed_elsewhere

    @property
    def version(self) -> str | None:
        """Return the desired Kubernetes version."""
        return self.machine_pool.version

    @property
    def failure_domains(self) -> tuple[str, ...]:
        """Return the failure domains in which to create machines; empty if any will do."""
        return self.machine_pool.failure_domains

    def bootstrap_data(self) -> BootstrapData:
        """Read the bootstrap data for new machines, in synchronous code (MP-19).

        The data change over time: read them again for each new machine or launch template.  Each
        call is a request.  Raises NotAvailableError if the Secret does not exist; let it
        propagate, to wait for the Secret.
        """
        return wait_for(self._bootstrap, self._loop)

    async def bootstrap_data_async(self) -> BootstrapData:
        """Read the bootstrap data, in asynchronous code; see ``bootstrap_data``."""
        return await self._bootstrap()


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachinePoolDeleteScope(InfraDeleteScope[Spec]):
    """Scope of ``reconcile_delete`` of a machine pool.

    Its MachinePool and its Cluster may have been deleted already.
    """

    cluster: Cluster | None
    """None if it no longer exists."""
    machine_pool: MachinePool | None
    """None if it no longer exists."""
    infra_cluster: InfraClusterView | None
    """None if it no longer exists, or if another provider manages it."""
    provider_ids: tuple[str, ...]
    """The provider ids of the machines that you returned last; a user may have set others."""


class InfraMachinePoolReconciler(SessionUser, ABC, Generic[Spec]):
    """Manages pools without Machines, such as scaling groups."""

    @abstractmethod
    def reconcile_normal(
        self, pool: InfraMachinePoolScope[Spec]
    ) -> InfraMachinePoolState | Waiting | Awaitable[InfraMachinePoolState | Waiting]:
        """Create or scale the pool and return its state.

        Also called when the bootstrap data or the spec have changed: the reconciler decides
        whether to replace the existing machines.
        """

    @abstractmethod
    def reconcile_delete(
        self, pool: InfraMachinePoolDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Delete the pool and its machines; return Deleted only when it no longer exists."""


class MachinePoolMachinesReconciler(SessionUser, Generic[Spec]):
    """Manages the size of pools that consist of this provider's infrastructure machines.

    The runtime creates and deletes the machines; the reconciler of their kind manages the servers.
    """

    max_surge: int | str = 0
    """How many machines more than desired a rollout may create: a number, or a share as "10%"."""
    max_unavailable: int | str = 1
    """How many machines fewer than desired may have a Node during a rollout."""

    def replicas(self, pool: InfraMachinePoolScope[Spec]) -> int | Awaitable[int | None] | None:
        """Return the size that the infrastructure's own autoscaler requests (MP-17).

        Called only while ``replicas_managed_elsewhere`` is true.  With None, the default, the
        runtime creates and deletes no machines, but reports their number.
        """
        return None
