"""Deprecated capsmith 0.1 names for infrastructure providers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, Generic, TypeVar

from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.infrastructure import api
from capsmith_runtime.infrastructure.api import (
    ClaimedAddress,
    InfraClusterReconciler,
    InfraClusterState,
    InfraClusterView,
    InfraMachineState,
    MachineCapacity,
)
from capsmith_runtime.infrastructure.api import InfraClusterDeleteScope as InfraClusterDeletion
from capsmith_runtime.infrastructure.api import InfraClusterScope as InfraCluster
from capsmith_runtime.infrastructure.api import InfraMachineDeleteScope as InfraMachineDeletion
from capsmith_runtime.infrastructure.api import InfraMachineScope as InfraMachine
from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolDeleteScope as InfraMachinePoolDeletion,
)
from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolReconciler,
    InfraMachinePoolState,
    Instance,
    MachinePoolMachinesReconciler,
)
from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolScope as InfraMachinePool,
)
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.scopes import BootstrapData

__all__ = [
    "BootstrapData",
    "ClaimedAddress",
    "InfraCluster",
    "InfraClusterDeletion",
    "InfraClusterReconciler",
    "InfraClusterState",
    "InfraClusterView",
    "InfraMachine",
    "InfraMachineDeletion",
    "InfraMachinePool",
    "InfraMachinePoolDeletion",
    "InfraMachinePoolReconciler",
    "InfraMachinePoolState",
    "InfraMachineReconciler",
    "InfraMachineState",
    "Instance",
    "MachineCapacity",
    "MachinePool",
    "MachinePoolMachinesReconciler",
]

Spec = TypeVar("Spec")


class InfraMachineReconciler(api.InfraMachineReconciler[Spec], Generic[Spec]):
    """Manages servers for Machines; ``capacity`` receives a template's spec instead of a scope."""

    _capacity_gets_spec: ClassVar[bool] = True

    def capacity(
        self, spec: Spec
    ) -> MachineCapacity | Waiting | Awaitable[MachineCapacity | Waiting | None] | None:
        """Return the capacity of a machine with the spec ``spec``, or None if it is unknown."""
        return None
