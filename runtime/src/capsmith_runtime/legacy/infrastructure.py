"""Names of capsmith 0.1 for infrastructure providers."""

from __future__ import annotations

from capsmith_runtime.contract.machine_pool import (
    MachinePool,
)
from capsmith_runtime.infrastructure.machine_pool.api import (
    InfraMachinePoolDeleteScope as InfraMachinePoolDeletion,
)
from capsmith_runtime.infrastructure.machine_pool.api import (
    InfraMachinePoolReconciler,
    InfraMachinePoolState,
    Instance,
    MachinePoolMachinesReconciler,
)
from capsmith_runtime.infrastructure.machine_pool.api import (
    InfraMachinePoolScope as InfraMachinePool,
)
from capsmith_runtime.infrastructure.reconcilers import (
    InfraClusterReconciler,
    InfraMachineReconciler,
)
from capsmith_runtime.infrastructure.results import (
    InfraClusterState,
    InfraMachineState,
    MachineCapacity,
)
from capsmith_runtime.infrastructure.scopes import (
    ClaimedAddress,
    InfraClusterView,
)
from capsmith_runtime.infrastructure.scopes import (
    InfraClusterDeleteScope as InfraClusterDeletion,
)
from capsmith_runtime.infrastructure.scopes import (
    InfraClusterScope as InfraCluster,
)
from capsmith_runtime.infrastructure.scopes import (
    InfraMachineDeleteScope as InfraMachineDeletion,
)
from capsmith_runtime.infrastructure.scopes import (
    InfraMachineScope as InfraMachine,
)
from capsmith_runtime.reconcile.scopes import (
    BootstrapData,
)

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
