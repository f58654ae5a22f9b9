"""Requests as core sends them, one for each hook."""

from __future__ import annotations

from typing import Any

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
