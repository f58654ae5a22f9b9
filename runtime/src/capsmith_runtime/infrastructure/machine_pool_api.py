"""The author's API for machine pools.

There are two types of pools. A pool without Machines is a single infrastructure resource, such as a
scaling group: the author's reconciler manages it and lists its machines. A pool with Machines
consists of the provider's own infrastructure machines, which the runtime creates and deletes; the
author decides only how many there are, and only while an external autoscaler manages the replicas.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.contract.model import Address, Condition
from capsmith_runtime.infrastructure.api import (
    InfraClusterUser,
    InfraClusterView,
    InfraDeleteScope,
    InfraScope,
)
from capsmith_runtime.reconcile.kubernetes_client import wait_for
from capsmith_runtime.reconcile.results import (
    MAX_ADDRESSES,
    MAX_CONDITIONS,
    MAX_PROVIDER_ID,
    Deleted,
    State,
    Waiting,
)
from capsmith_runtime.reconcile.scopes import BootstrapData, BootstrapReader
from capsmith_runtime.reconcile.sessions import SessionUser

Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A single machine in a pool without Machines."""

    provider_id: str
    """The machine's provider id, identical to the Node's ``spec.providerID``."""
    name: str = ""
    """The machine's name in the infrastructure, or an empty string if it has none."""
    addresses: Sequence[Address] = ()
    """The machine's addresses, at most 256."""
    version: str | None = None
    """The Kubernetes version that the machine runs, or None if unknown.

    While a pool is upgraded, this differs from the pool's ``version``.
    """
    ready: bool = True
    """Whether the machine is running; only running machines count as ready replicas."""
    conditions: Sequence[Condition] = ()
    """This machine's conditions, at most 30 and one of each type; they replace the former ones.

    The pool needs ``instanceStatus`` in provider.yaml, or they are not written.
    """
    status: Any = None
    """Instance of the generated InstanceStatus class, which replaces the former fields, or None.

    The pool needs ``instanceStatus`` in provider.yaml.
    """

    def __post_init__(self) -> None:
        if not 1 <= len(self.provider_id) <= MAX_PROVIDER_ID:
            raise ValueError(f"provider_id must have 1 to {MAX_PROVIDER_ID} characters")
        if len(self.name) > 256 or len(self.version or "") > 256:
            raise ValueError("name and version must have at most 256 characters")
        if len(self.addresses) > MAX_ADDRESSES:
            raise ValueError(f"an instance may have at most {MAX_ADDRESSES} addresses")
        types = {condition.type for condition in self.conditions}
        if len(types) < len(self.conditions) or len(types) > MAX_CONDITIONS:
            raise ValueError(f"conditions must be at most {MAX_CONDITIONS}, each type once")


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachinePoolState(State):
    """State of an existing pool: its machines, in any order.

    Once you have returned a state, the pool stays provisioned, even while it is being scaled.
    Report later problems with ``ready=False``, a reason and a message. Core deletes the Node of a
    machine that is no longer listed, so raise an exception if the machines cannot be read from the
    infrastructure.
    """

    instances: Sequence[Instance] = ()
    """The pool's machines, each with a unique ``provider_id``."""
    replicas: int | None = None
    """Size that the infrastructure's own autoscaler requests, or None for the number of instances.

    The runtime writes it to MachinePool.spec.replicas while ``replicas_managed_elsewhere`` is true
    (MP-17).
    """
    provider_id: str | None = None
    """Provider id of the pool itself, for display only, or None to report none (MP-05)."""

    def __post_init__(self) -> None:
        State.__post_init__(self)
        if self.provider_id is not None and not 1 <= len(self.provider_id) <= MAX_PROVIDER_ID:
            raise ValueError(f"provider_id must have 1 to {MAX_PROVIDER_ID} characters")
        if self.replicas is not None and self.replicas < 0:
            raise ValueError("replicas cannot be negative")
        ids = {instance.provider_id for instance in self.instances}
        if len(ids) < len(self.instances):
            raise ValueError("instances must contain each provider_id once")


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class InfraMachinePoolScope(InfraScope[Spec], InfraClusterUser):
    """Scope of ``reconcile_normal`` for a machine pool."""

    machine_pool: MachinePool
    """The MachinePool that owns the pool."""
    infra_cluster: InfraClusterView | None
    """The pool's infrastructure cluster, or None if another provider manages it."""
    provider_ids: tuple[str, ...]
    """Provider ids of the machines that the reconciler last returned.  A user may change them."""
    _bootstrap: BootstrapReader = field(repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    @property
    def replicas(self) -> int:
        """Return the desired number of machines.

        While ``replicas_managed_elsewhere`` is true, use it only as the initial size of a new pool.
        """
        return self.machine_pool.replicas

    @property
    def replicas_managed_elsewhere(self) -> bool:
        """Return whether the infrastructure's own autoscaler sets the pool's size (MP-17)."""
        return self.machine_pool.replicas_managed_elsewhere

    @property
    def version(self) -> str | None:
        """Return the desired Kubernetes version, or None if the MachinePool sets none.

        Replace or upgrade the machines that run another one.
        """
        return self.machine_pool.version

    @property
    def failure_domains(self) -> tuple[str, ...]:
        """Return the failure domains in which to create machines; empty if all are allowed."""
        return self.machine_pool.failure_domains

    def bootstrap_data(self) -> BootstrapData:
        """Return the bootstrap data for new machines (MP-19); use this method in synchronous code.

        The data change over time: read them again for each new machine or launch template.  Each
        call sends a request to the API server and blocks the thread.  Raises NotAvailableError if
        the Secret does not exist; do not catch it, so that the pool waits for the Secret.
        """
        return wait_for(self._bootstrap, self._loop)

    async def bootstrap_data_async(self) -> BootstrapData:
        """Return the bootstrap data without blocking the event loop; see ``bootstrap_data``."""
        return await self._bootstrap()


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachinePoolDeleteScope(InfraDeleteScope[Spec], InfraClusterUser):
    """Scope of ``reconcile_delete`` for a machine pool.

    The MachinePool and the Cluster may already have been deleted.
    """

    cluster: Cluster | None
    """The Cluster that the pool belongs to, or None if it no longer exists."""
    machine_pool: MachinePool | None
    """The MachinePool that owns the pool, or None if it no longer exists."""
    infra_cluster: InfraClusterView | None
    """The infrastructure cluster, or None if it no longer exists or another provider manages it."""
    provider_ids: tuple[str, ...]
    """Provider ids of the machines that the reconciler last returned.  A user may change them."""


class InfraMachinePoolReconciler(SessionUser, ABC, Generic[Spec]):
    """Base class for reconcilers of pools without Machines, such as scaling groups."""

    @abstractmethod
    def reconcile_normal(
        self, pool: InfraMachinePoolScope[Spec]
    ) -> InfraMachinePoolState | Waiting | Awaitable[InfraMachinePoolState | Waiting]:
        """Create or scale the pool and return its state.

        This method is also called after the version, the bootstrap data or the spec have changed.
        A new version has to reach all machines; whether they are replaced for other changes is up
        to the reconciler.
        """

    @abstractmethod
    def reconcile_delete(
        self, pool: InfraMachinePoolDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Delete the pool and its machines; return Deleted only when they are all gone."""


class MachinePoolMachinesReconciler(SessionUser, Generic[Spec]):
    """Manages the size of pools that consist of this provider's infrastructure machines.

    The runtime creates and deletes the machines; the machine kind's reconciler manages the servers.
    """

    max_surge: int | str = 0
    """Maximum number of machines that a rollout may create beyond the desired number.

    Either a count or a percentage of the desired number, such as "10%".
    """
    max_unavailable: int | str = 1
    """Maximum number of machines without a Node in a rollout: a count, or a percentage like "10%".
    """

    def replicas(self, pool: InfraMachinePoolScope[Spec]) -> int | Awaitable[int | None] | None:
        """Return the size requested by the infrastructure's own autoscaler (MP-17).

        Called only while ``replicas_managed_elsewhere`` is true. By default, returns None; the
        runtime neither creates nor deletes machines, and only reports how many there are.
        """
        return None
