"""Resources that all machines of a cluster share: networks, load balancers, endpoints."""

from __future__ import annotations

from capsmith_runtime.infrastructure import (
    Deleted,
    Endpoint,
    InfraClusterDeleteScope,
    InfraClusterReconciler,
    InfraClusterScope,
    InfraClusterState,
    Waiting,
)

from .._generated.api.nimbus_metal_cluster import NimbusMetalClusterSpec
from ..cloud import SimulatedCloud


class NimbusMetalClusterReconciler(InfraClusterReconciler[NimbusMetalClusterSpec]):
    """Replace the simulated cloud with your own client; keep the signatures."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._cloud = cloud or SimulatedCloud()

    def reconcile_normal(
        self, cluster: InfraClusterScope[NimbusMetalClusterSpec]
    ) -> InfraClusterState | Waiting:
        """Look up the resources, create them if they are missing, and return their state."""
        network = self._cloud.find_cluster(cluster.external_id)
        if network is None:
            network = self._cloud.create_cluster(cluster.external_id, cluster.name)
            cluster.logger.info("created", cluster=network.id)
        host, port = self._cloud.endpoint()
        return InfraClusterState(
            control_plane_endpoint=cluster.control_plane_endpoint or Endpoint(host, port),
        )

    def reconcile_delete(
        self, cluster: InfraClusterDeleteScope[NimbusMetalClusterSpec]
    ) -> Deleted | Waiting:
        """Delete the resources.  Return Deleted only when they no longer exist."""
        if self._cloud.delete_cluster(cluster.external_id):
            cluster.logger.info("deleted")
        return Deleted()
