"""Resources that all machines of a cluster share: networks, load balancers, endpoints."""

from __future__ import annotations

from capsmith_runtime.infrastructure import (
    Deleted,
    InfraClusterDeleteScope,
    InfraClusterReconciler,
    InfraClusterScope,
    InfraClusterState,
    Waiting,
)

from .._generated.api.lagoon_cluster import LagoonClusterSpec
from ..cloud import SimulatedCloud


class LagoonClusterReconciler(InfraClusterReconciler[LagoonClusterSpec]):
    """Replace the simulated cloud with your own client; keep the signatures."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._cloud = cloud or SimulatedCloud()

    def reconcile_normal(
        self, cluster: InfraClusterScope[LagoonClusterSpec]
    ) -> InfraClusterState | Waiting:
        """Look up the resources, create them if they are missing, and return their state."""
        network = self._cloud.find_cluster(cluster.external_id)
        if network is None:
            network = self._cloud.create_cluster(cluster.external_id, cluster.name)
            cluster.logger.info("created", cluster=network.id)
        return InfraClusterState()

    def reconcile_delete(
        self, cluster: InfraClusterDeleteScope[LagoonClusterSpec]
    ) -> Deleted | Waiting:
        """Delete the resources.  Return Deleted only when they no longer exist."""
        if self._cloud.delete_cluster(cluster.external_id):
            cluster.logger.info("deleted")
        return Deleted()
