"""A control plane that somebody else runs: where it is, how to get in, what version it has."""

from __future__ import annotations

from .. import (
    Gone,
    ManagedControlPlane,
    ManagedControlPlaneDeletion,
    ManagedControlPlaneReconciler,
    ManagedControlPlaneState,
    Waiting,
)
from .._generated.api.lagoon_control_plane import LagoonControlPlaneSpec
from ..cloud import SimulatedCloud
from ..hosted_control_planes import HostedControlPlanes


class LagoonControlPlaneReconciler(ManagedControlPlaneReconciler[LagoonControlPlaneSpec]):
    """Replace the simulated cloud by your own; the shape of the two methods stays."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._hosted = HostedControlPlanes(cloud or SimulatedCloud())

    def reconcile_normal(
        self, control_plane: ManagedControlPlane[LagoonControlPlaneSpec]
    ) -> ManagedControlPlaneState | Waiting:
        """Look first, create or upgrade, and answer with what there is."""
        if not control_plane.cluster.infrastructure_provisioned:
            message = "the cluster's infrastructure is not provisioned yet"
            return Waiting("WaitingForClusterInfrastructureReady", message, requeue_after=None)
        found = self._hosted.find(control_plane.external_id)
        if found is None:
            found = self._hosted.create(
                control_plane.external_id, control_plane.name, control_plane.version
            )
            control_plane.logger.info("created", version=found.version)
        if found.version != control_plane.version:
            found = self._hosted.upgrade(found, control_plane.version)
            control_plane.logger.info("upgraded", version=found.version)
        return ManagedControlPlaneState(
            endpoint=control_plane.control_plane_endpoint or self._hosted.endpoint(),
            version=found.version,
            kubeconfig=self._hosted.kubeconfig(found),
        )

    def reconcile_delete(
        self, control_plane: ManagedControlPlaneDeletion[LagoonControlPlaneSpec]
    ) -> Gone | Waiting:
        """Look first, remove what is there, and say Gone only when it is gone."""
        if self._hosted.find(control_plane.external_id) is not None:
            self._hosted.delete(control_plane.external_id)
            control_plane.logger.info("deleted")
        return Gone()
