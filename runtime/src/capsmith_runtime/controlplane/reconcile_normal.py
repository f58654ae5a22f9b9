"""Reconciles a control plane that is not being deleted."""

from __future__ import annotations

from typing import Any, Final

from capsmith_runtime.contract import constants
from capsmith_runtime.controlplane.api import ControlPlaneScope
from capsmith_runtime.controlplane.cluster_access import ClusterAccess
from capsmith_runtime.controlplane.control_plane import ControlPlane
from capsmith_runtime.controlplane.hook_caller import HookCaller
from capsmith_runtime.controlplane.lifecycle_hooks import LifecycleHooks
from capsmith_runtime.controlplane.rollout import next_rollout_seconds
from capsmith_runtime.controlplane.scale import MachineScaler
from capsmith_runtime.controlplane.summary import ReconcileSummary
from capsmith_runtime.controlplane.sync_machines import MachineSyncer
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting

WAITING_FOR_ENDPOINT: Final = Waiting(
    "WaitingForControlPlaneEndpoint", "Cluster has no spec.controlPlaneEndpoint yet", None
)
WAITING_FOR_INFRASTRUCTURE: Final = Waiting(
    constants.REASON_WAITING_FOR_INFRASTRUCTURE,
    "Cluster infrastructure is not provisioned yet",
    None,
)


class NormalReconciler:
    """The phases of a reconcile; each may end it early by a wait in the summary."""

    def __init__(
        self,
        hooks: HookCaller,
        syncer: MachineSyncer,
        scaler: MachineScaler,
        access: ClusterAccess,
        sync_seconds: float,
    ) -> None:
        self._hooks = hooks
        self._lifecycle_hooks = LifecycleHooks(hooks, syncer)
        self._syncer = syncer
        self._scaler = scaler
        self._access = access
        self._sync_seconds = sync_seconds

    async def reconcile(
        self,
        control_plane: ControlPlane,
        summary: ReconcileSummary,
        scope: ControlPlaneScope[Any],
    ) -> None:
        """Do what can be done now.

        Raises NotAvailableError, CacheNotSyncedError and errors of the API server.
        """
        await self._reconcile_template(control_plane, summary)
        if not await self._is_cluster_ready(control_plane, summary):
            return
        await self._scaler.remove_stale_annotations(control_plane)
        await self._sync_machines(control_plane, summary)
        await self._lifecycle_hooks.run(control_plane, summary, scope)
        blocked = summary.error is not None or control_plane.foreign_machines or summary.waits
        if not blocked:
            await self._scaler.scale(control_plane, summary)
        seconds = next_rollout_seconds(
            control_plane.machines, control_plane.criteria, control_plane.now
        )
        summary.requeue_after(seconds)

    async def _reconcile_template(
        self, control_plane: ControlPlane, summary: ReconcileSummary
    ) -> None:
        """Without a template no Machine can be created; existing ones are reconciled (CP-21)."""
        try:
            await self._syncer.reconcile_template(control_plane)
        except NotAvailableError as error:
            summary.wait(error.waiting)

    async def _is_cluster_ready(
        self, control_plane: ControlPlane, summary: ReconcileSummary
    ) -> bool:
        """Check for infrastructure and endpoint, and create certificates and kubeconfig."""
        if not control_plane.cluster.infrastructure_provisioned:
            summary.wait(WAITING_FOR_INFRASTRUCTURE)
            return False
        report = await self._access.reconcile_secrets(control_plane)
        summary.certificates, summary.certificates_message = report.waiting, report.message
        summary.requeue_after(report.seconds_to_renewal(self._sync_seconds))
        if control_plane.cluster.control_plane_endpoint is None:
            summary.wait(WAITING_FOR_ENDPOINT)
            return False
        if summary.certificates is not None:
            summary.wait(summary.certificates)
        return True

    async def _sync_machines(self, control_plane: ControlPlane, summary: ReconcileSummary) -> None:
        """Update all Machines in place, and find those that are outdated."""
        value = "" if self._hooks.has_before_remove else None
        for machine in control_plane.machines:
            hook = control_plane.annotations.pre_terminate_hook
            hooks = {} if machine.deleting else {hook: value}
            reasons = await self._syncer.sync(control_plane, machine, hooks)
            summary.outdated[machine.name] = reasons
