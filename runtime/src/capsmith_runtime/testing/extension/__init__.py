"""Builders for unit tests of runtime extensions: hooks' requests, without core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capsmith_runtime.extension.in_place import CanUpdateMachineRequest, MachineObjects
from capsmith_runtime.extension.lifecycle import ClusterRequest, UpgradePlanRequest
from capsmith_runtime.extension.topology import (
    GeneratePatchesRequest,
    Holder,
    Template,
    ValidateTopologyRequest,
)
from capsmith_runtime.extension.variables import TopologyCluster, Variables
from capsmith_runtime.testing.core import NAMESPACE

__all__ = [
    "can_update_machine",
    "cluster_request",
    "generate_patches",
    "machine_objects",
    "topology_cluster",
    "upgrade_plan",
    "validate_topology",
    "worker_template",
]


CLUSTER: dict[str, Any] = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Cluster",
    "metadata": {"name": "c1", "namespace": "default", "uid": "uid-1"},
    "spec": {"topology": {"classRef": {"name": "class"}, "version": "v1.34.0"}},
}
TEMPLATE: dict[str, Any] = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
    "kind": "AnyMachineTemplate",
    "metadata": {"name": "template", "namespace": "default"},
    "spec": {"template": {"spec": {"any": "field"}}},
}
MACHINE: dict[str, Any] = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Machine",
    "metadata": {"name": "m1", "namespace": "default"},
    "spec": {"clusterName": "c1", "version": "v1.34.0"},
}
BUILTIN: dict[str, Any] = {
    "name": "builtin",
    "value": {"cluster": {"name": "c1", "namespace": "default"}},
}
HOLDER = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "MachineDeployment",
    "namespace": "default",
    "name": "c1-workers",
    "fieldPath": "spec.template.spec.infrastructureRef",
}
_TOPOLOGY = {
    "variables": [BUILTIN],
    "items": [{"uid": "1", "holderReference": HOLDER, "object": TEMPLATE}],
}
_BEFORE = {
    "cluster": CLUSTER,
    "fromKubernetesVersion": "v1.33.0",
    "toKubernetesVersion": "v1.34.0",
}
_AFTER = {"cluster": CLUSTER, "kubernetesVersion": "v1.34.0"}
_MACHINES = {"machine": MACHINE, "infrastructureMachine": TEMPLATE, "bootstrapConfig": TEMPLATE}
_SETS = {
    "machineSet": MACHINE,
    "infrastructureMachineTemplate": TEMPLATE,
    "bootstrapConfigTemplate": TEMPLATE,
}

REQUESTS: dict[str, dict[str, Any]] = {
    "GeneratePatches": _TOPOLOGY,
    "ValidateTopology": _TOPOLOGY,
    "DiscoverVariables": {},
    "BeforeClusterCreate": {"cluster": CLUSTER},
    "AfterControlPlaneInitialized": {"cluster": CLUSTER},
    "BeforeClusterUpgrade": _BEFORE,
    "BeforeControlPlaneUpgrade": _BEFORE,
    "AfterControlPlaneUpgrade": _AFTER,
    "BeforeWorkersUpgrade": _BEFORE,
    "AfterWorkersUpgrade": _AFTER,
    "AfterClusterUpgrade": _AFTER,
    "BeforeClusterDelete": {"cluster": CLUSTER},
    "GenerateUpgradePlan": {
        "cluster": CLUSTER,
        "fromControlPlaneKubernetesVersion": "v1.32.0",
        "fromWorkersKubernetesVersion": "v1.32.0",
        "toKubernetesVersion": "v1.34.0",
    },
    "CanUpdateMachine": {"current": _MACHINES, "desired": _MACHINES},
    "CanUpdateMachineSet": {"current": _SETS, "desired": _SETS},
    "UpdateMachine": {"desired": _MACHINES},
}


def worker_template(kind: str, spec: Mapping[str, Any], **variables: Any) -> Template:
    """Create a MachineDeployment's infrastructure template, for machines with this spec."""
    return Template(
        uid="1",
        holder=Holder(
            api_version="cluster.x-k8s.io/v1beta2",
            kind="MachineDeployment",
            namespace=NAMESPACE,
            name="workers",
            field_path="spec.template.spec.infrastructureRef",
        ),
        object={
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
            "kind": kind,
            "spec": {"template": {"spec": spec}},
        },
        variables=Variables(variables),
    )


def generate_patches(*templates: Template, **settings: str) -> GeneratePatchesRequest:
    """Create a request to patch templates; the first template's variables apply to all."""
    variables = templates[0].variables if templates else Variables({})
    return GeneratePatchesRequest(settings=settings, variables=variables, templates=templates)


def validate_topology(*templates: Template, **settings: str) -> ValidateTopologyRequest:
    """Create a request to validate templates; the first template's variables apply to all."""
    variables = templates[0].variables if templates else Variables({})
    return ValidateTopologyRequest(settings=settings, variables=variables, templates=templates)


def topology_cluster(
    name: str = "cluster", *, annotations: Mapping[str, str] | None = None, **variables: Any
) -> TopologyCluster:
    """Create a Cluster with a topology."""
    return TopologyCluster(
        name=name,
        namespace=NAMESPACE,
        uid=f"uid-of-{name}",
        labels={},
        annotations=annotations or {},
        class_name="class",
        version="v1.34.0",
        variables=Variables(variables),
        raw={},
    )


def cluster_request(cluster: TopologyCluster, **settings: str) -> ClusterRequest:
    """Create a request about a Cluster alone."""
    return ClusterRequest(settings=settings, cluster=cluster)


def upgrade_plan(from_version: str, to_version: str) -> UpgradePlanRequest:
    """Create a request for an upgrade plan; workers have the same version as the control plane."""
    return UpgradePlanRequest(
        settings={},
        cluster=topology_cluster(),
        from_control_plane_version=from_version,
        from_workers_version=from_version,
        to_version=to_version,
    )


def machine_objects(
    machine: Mapping[str, Any],
    infrastructure: Mapping[str, Any] | None = None,
    bootstrap: Mapping[str, Any] | None = None,
) -> MachineObjects:
    """Create a Machine or MachineSet with the objects that it refers to."""
    return MachineObjects(
        machine=machine, infrastructure=infrastructure or {}, bootstrap=bootstrap or {}
    )


def can_update_machine(
    current: Mapping[str, Any], desired: Mapping[str, Any]
) -> CanUpdateMachineRequest:
    """Create a request that compares two specs of a Machine."""
    return CanUpdateMachineRequest(
        settings={},
        current=machine_objects({"spec": current}),
        desired=machine_objects({"spec": desired}),
    )
