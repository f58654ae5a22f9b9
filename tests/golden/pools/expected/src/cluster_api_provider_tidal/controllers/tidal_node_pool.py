"""Pools of TidalMachines, each with a Machine."""

from __future__ import annotations

from capsmith_runtime.infrastructure import InfraMachinePoolScope, MachinePoolMachinesReconciler

from .._generated.api.tidal_node_pool import TidalNodePoolSpec


class TidalNodePoolReconciler(MachinePoolMachinesReconciler[TidalNodePoolSpec]):
    """The runtime creates and deletes the machines of a pool.

    TidalMachineReconciler manages their servers.
    """

    def replicas(self, pool: InfraMachinePoolScope[TidalNodePoolSpec]) -> int | None:
        """Return the number of machines that the infrastructure's own autoscaler requests.

        Called only while the MachinePool has the annotation cluster.x-k8s.io/replicas-managed-by.
        None means that the runtime creates and deletes no machines, but reports their number.
        """
        return None
