"""What all machines of a cluster share: networks, load balancers, endpoints."""

from __future__ import annotations

from .. import (
    Gone,
    InfraCluster,
    InfraClusterDeletion,
    InfraClusterReconciler,
    InfraClusterState,
    Waiting,
)
from .._generated.api.lagoon_cluster import LagoonClusterSpec
from ..cloud import SimulatedCloud


class LagoonClusterReconciler(InfraClusterReconciler[LagoonClusterSpec]):
    """Replace the simulated cloud by your own; the shape of the two methods stays."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._cloud = cloud or SimulatedCloud()

    def reconcile_normal(
        self, cluster: InfraCluster[LagoonClusterSpec]
    ) -> InfraClusterState | Waiting:
        """Look first, create what is missing, and answer with what there is."""
        network = self._cloud.find_cluster(cluster.external_id)
        if network is None:
            network = self._cloud.create_cluster(cluster.external_id, cluster.name)
            cluster.logger.info("created", cluster=network.id)
        return InfraClusterState()

    def reconcile_delete(self, cluster: InfraClusterDeletion[LagoonClusterSpec]) -> Gone | Waiting:
        """Look first, remove what is there, and say Gone only when it is gone."""
        if self._cloud.find_cluster(cluster.external_id) is not None:
            self._cloud.delete_cluster(cluster.external_id)
            cluster.logger.info("deleted")
        return Gone()
