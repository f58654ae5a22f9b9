"""Control planes that a service runs: endpoint, credentials and version."""

from __future__ import annotations

from capsmith_runtime.controlplane import (
    Deleted,
    ManagedControlPlaneDeleteScope,
    ManagedControlPlaneReconciler,
    ManagedControlPlaneScope,
    ManagedControlPlaneState,
    Waiting,
)

from .._generated.api.lagoon_control_plane import LagoonControlPlaneSpec
from ..cloud import SimulatedCloud
from ..hosted_control_planes import HostedControlPlanes


class LagoonControlPlaneReconciler(ManagedControlPlaneReconciler[LagoonControlPlaneSpec]):
    """Replace the simulated cloud with your own client; keep the signatures."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._hosted = HostedControlPlanes(cloud or SimulatedCloud())

    def reconcile_normal(
        self, control_plane: ManagedControlPlaneScope[LagoonControlPlaneSpec]
    ) -> ManagedControlPlaneState | Waiting:
        """Look up the control plane, create or upgrade it, and return its state."""
        if not control_plane.cluster.infrastructure_provisioned:
            message = "the cluster's infrastructure is not provisioned yet"
            return Waiting("WaitingForClusterInfrastructureReady", message, requeue_after=None)
        hosted = self._hosted.find(control_plane.external_id)
        if hosted is None:
            hosted = self._hosted.create(
                control_plane.external_id, control_plane.name, control_plane.version
            )
            control_plane.logger.info("created", version=hosted.version)
        if hosted.version != control_plane.version:
            hosted = self._hosted.upgrade(hosted, control_plane.version)
            control_plane.logger.info("upgraded", version=hosted.version)
        return ManagedControlPlaneState(
            endpoint=control_plane.control_plane_endpoint or self._hosted.endpoint(),
            version=hosted.version,
            kubeconfig=self._hosted.kubeconfig(hosted),
        )

    def reconcile_delete(
        self, control_plane: ManagedControlPlaneDeleteScope[LagoonControlPlaneSpec]
    ) -> Deleted | Waiting:
        """Look up the control plane, delete it, and return Deleted only when it is gone."""
        if self._hosted.find(control_plane.external_id) is not None:
            self._hosted.delete(control_plane.external_id)
            control_plane.logger.info("deleted")
        return Deleted()
