"""Reading core objects of cluster.x-k8s.io/v1beta1."""

from __future__ import annotations

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.constants import (
    CONTROL_PLANE_LABEL,
    CORE_GROUP,
    MACHINE_POOL_KIND,
)
from capsmith_runtime.contract.core import (
    Cluster,
    Machine,
    read_cidrs,
    read_data_secret_name,
    read_endpoint,
    read_port,
)
from capsmith_runtime.contract.model import Object, ObjectRef


class CoreV1Beta1:
    """A :class:`.core.CoreReader` for v1beta1."""

    version = "v1beta1"

    def cluster(self, obj: Object) -> Cluster:
        """Return the view of a Cluster."""
        return Cluster(
            name=metadata.name(obj),
            namespace=metadata.namespace(obj),
            uid=metadata.uid(obj),
            labels=metadata.labels(obj),
            annotations=metadata.annotations(obj),
            deleting=metadata.deleting(obj),
            paused=metadata.lookup(obj, "spec", "paused") is True,
            infrastructure_provisioned=_true(obj, "status", "infrastructureReady"),
            control_plane_initialized=_has_condition(obj, "ControlPlaneInitialized"),
            control_plane_endpoint=read_endpoint(obj),
            infrastructure=_reference(obj),
            pod_cidrs=read_cidrs(obj, "pods"),
            service_cidrs=read_cidrs(obj, "services"),
            api_server_port=read_port(obj),
        )

    def machine(self, obj: Object) -> Machine:
        """Return the view of a Machine."""
        return Machine(
            name=metadata.name(obj),
            namespace=metadata.namespace(obj),
            uid=metadata.uid(obj),
            labels=metadata.labels(obj),
            annotations=metadata.annotations(obj),
            deleting=metadata.deleting(obj),
            cluster_name=metadata.text(obj, "spec", "clusterName"),
            version=metadata.text(obj, "spec", "version") or None,
            failure_domain=metadata.text(obj, "spec", "failureDomain") or None,
            data_secret_name=read_data_secret_name(obj),
            pool_name=metadata.owner_name(obj, MACHINE_POOL_KIND, CORE_GROUP),
            is_control_plane=CONTROL_PLANE_LABEL in metadata.labels(obj),
            infrastructure=_reference(obj),
        )


def _true(obj: Object, *path: str) -> bool:
    return metadata.lookup(obj, *path) is True


def _has_condition(obj: Object, name: str) -> bool:
    """Return whether a condition is True; ``status.controlPlaneReady`` would flip with health."""
    entry = conditions.find(metadata.items(obj, "status", "conditions"), name)
    return entry is not None and entry.get("status") == "True"


def _reference(obj: Object) -> ObjectRef | None:
    reference = metadata.mapping(obj, "spec", "infrastructureRef")
    name = metadata.text(reference, "name")
    if not name:
        return None
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    return ObjectRef(group, metadata.text(reference, "kind"), name)
