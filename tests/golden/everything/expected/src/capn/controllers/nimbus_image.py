"""The infrastructure behind NimbusImage objects."""

from __future__ import annotations

from capsmith_runtime.resource import (
    Deleted,
    ResourceDeleteScope,
    ResourceReconciler,
    ResourceScope,
    ResourceState,
    Waiting,
)

from .._generated.api.nimbus_image import NimbusImageSpec
from ..cloud import SimulatedCloud


class NimbusImageReconciler(ResourceReconciler[NimbusImageSpec]):
    """Replace the simulated cloud with your own client; keep the signatures."""

    def __init__(self, cloud: SimulatedCloud | None = None) -> None:
        self._cloud = cloud or SimulatedCloud()

    def reconcile_normal(self, resource: ResourceScope[NimbusImageSpec]) -> ResourceState | Waiting:
        """Look up the infrastructure, create it if it is missing, and return its state."""
        found = self._cloud.find_resource(resource.external_id)
        if found is None:
            found = self._cloud.create_resource(resource.external_id, resource.name)
            resource.logger.info("created", resource=found.id)
        return ResourceState()

    def reconcile_delete(self, resource: ResourceDeleteScope[NimbusImageSpec]) -> Deleted | Waiting:
        """Delete the infrastructure.  Return Deleted only when it no longer exists."""
        if self._cloud.delete_resource(resource.external_id):
            resource.logger.info("deleted")
        return Deleted()
