"""Deletes a control plane: all Machines, what is left of unfinished ones, then the finalizer.

Deletion begins when the last worker is gone (CP-34).
"""

from __future__ import annotations

from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.control_plane_machine import is_control_plane
from capsmith_runtime.controlplane.control_plane import ControlPlane
from capsmith_runtime.controlplane.machine_client import MachineClient
from capsmith_runtime.controlplane.scale import CACHE_IS_STALE, MachineScaler
from capsmith_runtime.controlplane.summary import ReconcileSummary
from capsmith_runtime.controlplane.sync_machines import MachineSyncer
from capsmith_runtime.reconcile.caches import BY_CLUSTER, Caches
from capsmith_runtime.reconcile.results import Waiting

WAITING_FOR_WORKERS: Final = "WaitingForWorkersDeletion"
WAITING_FOR_MACHINES: Final = "WaitingForMachineDeletion"
_RETRY_SECONDS: Final = 10.0


class DeleteReconciler:
    """Deletes all Machines at once: there is no quorum left to keep."""

    def __init__(
        self,
        caches: Caches,
        scaler: MachineScaler,
        machine_client: MachineClient,
        syncer: MachineSyncer,
    ) -> None:
        self._caches = caches
        self._scaler = scaler
        self._machine_client = machine_client
        self._syncer = syncer

    async def reconcile(self, control_plane: ControlPlane, summary: ReconcileSummary) -> bool:
        """Delete what can be deleted now; report if nothing is left."""
        workers = self._workers(control_plane)
        if workers:
            # Without an API server their Nodes could not be drained.
            message = f"Machines outside the control plane still exist: {', '.join(workers)}"
            summary.wait(Waiting(WAITING_FOR_WORKERS, message, _RETRY_SECONDS))
            return False
        hook = control_plane.annotations.pre_terminate_hook
        for machine in control_plane.machines:
            if hook in machine.annotations:
                # No member remains for which etcd membership would matter.
                await self._syncer.annotate(machine, {hook: None})
            if not machine.deleting:
                await self._machine_client.delete(machine)
        if control_plane.machines:
            names = ", ".join(sorted(machine.name for machine in control_plane.machines))
            summary.wait(Waiting(WAITING_FOR_MACHINES, f"waits until {names} is gone", None))
            return False
        if not await self._scaler.clean_up(control_plane, summary):
            return False
        if not await self._scaler.is_cache_fresh(control_plane):
            summary.wait(CACHE_IS_STALE)
            return False
        return True

    def _workers(self, control_plane: ControlPlane) -> list[str]:
        value = f"{control_plane.cluster.namespace}/{control_plane.cluster.name}"
        machines = self._caches.machines.by_index(BY_CLUSTER, value)
        return sorted(metadata.name(each) for each in machines if not is_control_plane(each))
