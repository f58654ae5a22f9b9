"""Pools whose servers are TidalMachines, each with a Machine."""

from __future__ import annotations

from .. import InfraMachinePool, MachinePoolMachinesReconciler
from .._generated.api.tidal_node_pool import TidalNodePoolSpec


class TidalNodePoolReconciler(MachinePoolMachinesReconciler[TidalNodePoolSpec]):
    """Machines come and go by themselves; TidalMachineReconciler keeps their servers."""

    def replicas(self, pool: InfraMachinePool[TidalNodePoolSpec]) -> int | None:
        """How many machines an autoscaler of the infrastructure wants.

        Asked only while MachinePool has the annotation cluster.x-k8s.io/replicas-managed-by.
        None: whoever else makes or deletes machines, they are only counted here.
        """
        return None
