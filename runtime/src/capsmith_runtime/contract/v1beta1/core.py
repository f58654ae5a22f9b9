"""Reading core objects of cluster.x-k8s.io/v1beta1."""

from __future__ import annotations

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.core import Cluster, Machine, read_cluster, read_machine
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.contract.v1beta1.references import read_reference


class CoreV1Beta1:
    """A :class:`.core.CoreReader` for v1beta1."""

    version = "v1beta1"

    def cluster(self, obj: Object) -> Cluster:
        """Return the view of a Cluster."""
        return read_cluster(
            obj,
            infrastructure_provisioned=(
                metadata.lookup(obj, "status", "infrastructureReady") is True
            ),
            control_plane_initialized=_has_condition(obj, "ControlPlaneInitialized"),
            infrastructure=_infrastructure(obj),
        )

    def machine(self, obj: Object) -> Machine:
        """Return the view of a Machine."""
        return read_machine(obj, infrastructure=_infrastructure(obj))


def _infrastructure(obj: Object) -> ObjectRef | None:
    return read_reference(metadata.mapping(obj, "spec", "infrastructureRef"))


def _has_condition(obj: Object, name: str) -> bool:
    """Return whether a condition is True; ``status.controlPlaneReady`` would flip with health."""
    entry = conditions.find(metadata.items(obj, "status", "conditions"), name)
    return entry is not None and entry.get("status") == "True"
