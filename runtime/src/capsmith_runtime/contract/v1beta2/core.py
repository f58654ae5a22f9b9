"""Reading core objects of cluster.x-k8s.io/v1beta2."""

from __future__ import annotations

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import Cluster, Machine, read_cluster, read_machine
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.contract.v1beta2.references import read_reference


class CoreV1Beta2:
    """A :class:`.core.CoreReader` for v1beta2."""

    version = "v1beta2"

    def cluster(self, obj: Object) -> Cluster:
        """Return the view of a Cluster."""
        done = metadata.mapping(obj, "status", "initialization")
        return read_cluster(
            obj,
            infrastructure_provisioned=done.get("infrastructureProvisioned") is True,
            control_plane_initialized=done.get("controlPlaneInitialized") is True,
            infrastructure=_infrastructure(obj),
        )

    def machine(self, obj: Object) -> Machine:
        """Return the view of a Machine."""
        return read_machine(obj, infrastructure=_infrastructure(obj))


def _infrastructure(obj: Object) -> ObjectRef | None:
    return read_reference(metadata.mapping(obj, "spec", "infrastructureRef"))
