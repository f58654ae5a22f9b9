"""Objects of core and kubeadm that their webhooks take, and mistakes that they refuse."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from capsmith import resources
from capsmith.contract.core_kinds import load_core_kinds

JSON = dict[str, Any]
Path = tuple[str | int, ...]
VERSIONS = ("v1beta1", "v1beta2")
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
CLASS = "sample"
_MISSING = object()
_LABELS = {"matchLabels": {"role": "worker"}}


class Mistake(NamedTuple):
    """A change of one object: a value, or none where the field is dropped."""

    kind: str
    path: Path
    value: Any = _MISSING
    versions: tuple[str, ...] = ("v1beta2",)

    def __str__(self) -> str:
        """Return a name that is the same in each process, as ids of tests have to be."""
        value = "missing" if self.value is _MISSING else json.dumps(self.value, sort_keys=True)
        return f"{self.kind} {'.'.join(map(str, self.path))} {value}"

    def applied(self, document: Mapping[str, Any]) -> JSON:
        """Return a copy of the object with the mistake."""
        changed: JSON = copy.deepcopy(dict(document))
        current: Any = changed
        for step in self.path[:-1]:
            current = current[step] if isinstance(step, int) else current.setdefault(step, {})
        if self.value is _MISSING:
            del current[self.path[-1]]
        else:
            current[self.path[-1]] = self.value
        return changed


def build_objects(version: str) -> dict[str, JSON]:
    """Return an object of each kind in an API version, by a name of its own."""
    found: dict[str, JSON] = {}
    for name, group, spec in _specs(version):
        kind = name.partition(" ")[0]
        api_version = f"{group}/{version}"
        metadata = {"name": CLASS, "namespace": "default"}
        found[name] = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    return found


def _reference(version: str, kind: str, group: str = INFRASTRUCTURE) -> JSON:
    key = {"apiVersion": f"{group}/{version}"} if version == "v1beta1" else {"apiGroup": group}
    return {**key, "kind": kind, "name": CLASS}


def _template(version: str, kind: str, group: str = INFRASTRUCTURE) -> JSON:
    key = "ref" if version == "v1beta1" else "templateRef"
    return {key: {"apiVersion": f"{group}/{version}", "kind": kind, "name": CLASS}}


def _specs(version: str) -> Iterator[tuple[str, str, JSON]]:
    core, kubeadm = "cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io"
    machine = {
        "clusterName": CLASS,
        "bootstrap": {"dataSecretName": CLASS},
        "infrastructureRef": _reference(version, "AcmeMachine"),
    }
    machines = {
        "metadata": {"labels": {"role": "worker"}},
        "spec": {**machine, "infrastructureRef": _reference(version, "AcmeMachineTemplate")},
    }
    workers = {"clusterName": CLASS, "template": machines}
    yield "MachineDeployment", core, {**workers, "selector": _LABELS}
    yield "MachineSet", core, {**workers, "selector": _LABELS}
    yield "MachinePool", core, workers
    yield "Machine", core, machine
    condition = {"type": "Ready", "status": "False"}
    checks: JSON = {"unhealthyConditions": [{**condition, "timeout": "5m"}]}
    if version != "v1beta1":
        checks = {"checks": {"unhealthyNodeConditions": [{**condition, "timeoutSeconds": 300}]}}
    yield "MachineHealthCheck", core, {"clusterName": CLASS, "selector": _LABELS, **checks}
    resources = [{"kind": "ConfigMap", "name": CLASS}]
    yield "ClusterResourceSet", f"addons.{core}", {
        "clusterSelector": _LABELS,
        "resources": resources,
    }
    config = {
        "initConfiguration": {"nodeRegistration": {"name": "node"}},
        "files": [{"path": "/a", "content": "a"}],
    }
    yield "KubeadmConfig", kubeadm, config
    yield "KubeadmConfigTemplate", kubeadm, {"template": {"spec": config}}
    inner = {"infrastructureRef": _reference(version, "AcmeMachineTemplate")}
    yield "KubeadmControlPlane", f"controlplane.{core}", {
        "version": "v1.35.0",
        "replicas": 1,
        "kubeadmConfigSpec": config,
        "machineTemplate": inner if version == "v1beta1" else {"spec": inner},
    }
    control_plane = _reference(version, "KubeadmControlPlane", f"controlplane.{core}")
    yield "Cluster", core, {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
        "controlPlaneRef": control_plane,
        "infrastructureRef": _reference(version, "AcmeCluster"),
    }
    yield "Cluster of a class", core, {"topology": _topology(version)}
    yield "ClusterClass", core, _class(version)


def _topology(version: str) -> JSON:
    name = {"class": CLASS} if version == "v1beta1" else {"classRef": {"name": CLASS}}
    return {
        **name,
        "version": "v1.35.0",
        "variables": [{"name": "size", "value": "small"}],
        "workers": {"machineDeployments": [{"class": "worker", "name": "md-0"}]},
    }


def _class(version: str) -> JSON:
    parts = {
        "bootstrap": _template(version, "KubeadmConfigTemplate", "bootstrap.cluster.x-k8s.io"),
        "infrastructure": _template(version, "AcmeMachineTemplate"),
    }
    control_plane = _template(
        version, "KubeadmControlPlaneTemplate", "controlplane.cluster.x-k8s.io"
    )
    machines = _template(version, "AcmeMachineTemplate")
    schema = {"type": "string", "enum": ["small", "large"]}
    return {
        "infrastructure": _template(version, "AcmeClusterTemplate"),
        "controlPlane": {**control_plane, "machineInfrastructure": machines},
        "workers": {
            "machineDeployments": [
                {"class": "worker", **({"template": parts} if version == "v1beta1" else parts)}
            ]
        },
        "variables": [
            {"name": "size", "required": True, "schema": {"openAPIV3Schema": schema}},
        ],
    }


def _variable(schema: JSON, name: str = "added") -> JSON:
    return {"name": name, "required": False, "schema": {"openAPIV3Schema": schema}}


_TEXT = {"type": "string"}
_ADDED: Path = ("spec", "variables", 0)
_WORKER: Path = ("spec", "workers", "machineDeployments", 0)
_TOPOLOGY: Path = ("spec", "topology")
_MACHINE: Path = ("spec", "template", "spec")
_CONFIG: Path = ("spec", "kubeadmConfigSpec")
_SCALED = {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "3"}

OF_CLASSES = (
    Mistake("ClusterClass", _ADDED, _variable(_TEXT, "builtin")),
    Mistake("ClusterClass", _ADDED, _variable(_TEXT, "disk.size")),
    Mistake("ClusterClass", ("spec", "variables"), [_variable(_TEXT), _variable(_TEXT)]),
    Mistake("ClusterClass", _ADDED, _variable({"description": "a size"})),
    Mistake("ClusterClass", _ADDED, _variable({"type": "integer", "default": "1"})),
    Mistake("ClusterClass", _ADDED, _variable({"type": "integer", "minimum": 3, "default": 1})),
    Mistake("ClusterClass", _ADDED, _variable({**_TEXT, "enum": [1]})),
    Mistake("ClusterClass", _ADDED, _variable({**_TEXT, "example": 1})),
    Mistake("ClusterClass", _ADDED, _variable({**_TEXT, "pattern": "^(a"})),
    Mistake("ClusterClass", _ADDED, _variable({"type": "array"})),
    Mistake(
        "ClusterClass",
        _ADDED,
        _variable({**_TEXT, "x-kubernetes-validations": [{"rule": "self >", "message": "no"}]}),
    ),
    Mistake(
        "ClusterClass",
        ("spec", "infrastructure", "templateRef", "kind"),
        "AcmeCluster",
    ),
    Mistake("ClusterClass", ("spec", "infrastructure", "naming", "template"), "{{ .cluster.name }"),
    Mistake("ClusterClass", ("spec", "infrastructure", "naming", "template"), "A-{{ .random }}"),
    Mistake("ClusterClass", ("spec", "controlPlane", "naming", "template"), "{{ .machine }}"),
    Mistake("ClusterClass", ("spec", "kubernetesVersions"), ["v1.35.0", "v1.34.0"]),
    Mistake("ClusterClass", ("spec", "kubernetesVersions"), ["v1.35.0", "v1.35.0"]),
    Mistake("ClusterClass", ("spec", "kubernetesVersions"), ["v1.33.0", "v1.35.0"]),
    Mistake("ClusterClass", ("spec", "kubernetesVersions"), ["latest"]),
)
"""What the rule on ClusterClasses finds."""

OF_OBJECTS = (
    Mistake("ClusterClass", ("spec", "controlPlane", "metadata"), {"labels": {"a b": "c"}}),
    Mistake(
        "ClusterClass",
        ("spec", "controlPlane", "healthCheck", "checks"),
        {"nodeStartupTimeoutSeconds": 5},
    ),
    Mistake(
        "ClusterClass",
        (*_WORKER, "rollout", "strategy"),
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "many"}},
    ),
    Mistake("ClusterClass", ("spec", "colour"), "blue", VERSIONS),
    Mistake("ClusterClass", ("spec", "variables", 0, "required"), versions=VERSIONS),
    Mistake("Cluster", ("spec", "clusterNetwork", "pods", "cidrBlocks"), ["10.0.0.0"], VERSIONS),
    Mistake("Cluster", ("spec",), {"paused": True}, VERSIONS),
    Mistake("Cluster", ("spec", "paused"), "false", VERSIONS),
    Mistake("Cluster of a class", (*_TOPOLOGY, "version"), "latest", VERSIONS),
    Mistake("Cluster of a class", (*_TOPOLOGY, "version"), versions=VERSIONS),
    Mistake("Cluster of a class", (*_TOPOLOGY, "class"), CLASS),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "workers", "machineDeployments"),
        [{"class": "worker", "name": "md-0"}, {"class": "worker", "name": "md-0"}],
        VERSIONS,
    ),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "workers", "machineDeployments", 0),
        {"class": "worker", "name": "md-0", "replicas": 1, "metadata": {"annotations": _SCALED}},
        VERSIONS,
    ),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "controlPlane", "metadata"),
        {"labels": {"a": "b c"}},
        VERSIONS,
    ),
    Mistake("MachineDeployment", (*_MACHINE, "version"), "latest", VERSIONS),
    Mistake("MachineDeployment", (*_MACHINE, "bootstrap"), {}, VERSIONS),
    Mistake("MachineDeployment", (*_MACHINE, "clusterName"), "other", VERSIONS),
    Mistake("MachineDeployment", (*_MACHINE, "nodeDrainTimeout"), "10m"),
    Mistake("MachineDeployment", ("spec", "selector"), {"matchLabels": {"a": "b"}}, VERSIONS),
    Mistake("MachineDeployment", ("spec", "strategy"), {"type": "RollingUpdate"}),
    Mistake("MachineDeployment", ("spec", "replicas"), "two", VERSIONS),
    Mistake("MachinePool", (*_MACHINE, "bootstrap"), {}, VERSIONS),
    Mistake("MachineHealthCheck", ("spec", "selector"), {}, VERSIONS),
    Mistake("MachineHealthCheck", ("spec", "maxUnhealthy"), "40%"),
    Mistake("ClusterResourceSet", ("spec", "clusterSelector"), {}, VERSIONS),
    Mistake("ClusterResourceSet", ("spec", "resources", 0, "kind"), "Deployment", VERSIONS),
    Mistake("KubeadmControlPlane", ("spec", "version"), "1.35", VERSIONS),
    Mistake("KubeadmControlPlane", ("spec", "replicas"), 2, VERSIONS),
    Mistake("KubeadmControlPlane", ("spec", "rolloutStrategy"), {"type": "RollingUpdate"}),
    Mistake("KubeadmControlPlane", (*_CONFIG, "useExperimentalRetryJoin"), True),
    Mistake(
        "KubeadmControlPlane",
        (*_CONFIG, "clusterConfiguration", "apiServer", "extraArgs"),
        {"v": "4"},
    ),
    Mistake(
        "KubeadmConfigTemplate",
        (*_MACHINE, "initConfiguration", "nodeRegistration", "kubeletExtraArgs"),
        {"v": "4"},
    ),
    Mistake("KubeadmConfigTemplate", (*_MACHINE, "format"), "yaml", VERSIONS),
    Mistake("KubeadmConfig", ("spec", "files", 0, "contents"), "a", VERSIONS),
)
"""What the rule on objects of templates finds."""

OF_TOPOLOGIES = (
    Mistake("Cluster of a class", (*_TOPOLOGY, "variables"), [{"name": "other", "value": 1}]),
    Mistake("Cluster of a class", (*_TOPOLOGY, "variables", 0, "value"), "huge"),
    Mistake("Cluster of a class", (*_TOPOLOGY, "variables", 0, "value"), 3),
    Mistake("Cluster of a class", (*_TOPOLOGY, "variables"), []),
    Mistake(
        "Cluster of a class", (*_TOPOLOGY, "workers", "machineDeployments", 0, "class"), "other"
    ),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "workers", "machineDeployments", 0, "variables", "overrides"),
        [{"name": "size", "value": "huge"}],
    ),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "controlPlane", "variables", "overrides"),
        [{"name": "size", "value": "huge"}],
    ),
)
"""What the rule on Clusters of a ClusterClass finds."""


def list_mistakes(mistakes: tuple[Mistake, ...]) -> list[tuple[str, Mistake]]:
    """Return each mistake with each API version that has a place for it."""
    return [(version, each) for each in mistakes for version in each.versions]


def list_required(document: Mapping[str, Any]) -> list[Path]:
    """Return the paths of the fields that the object has and its schema requires."""
    kinds = load_core_kinds(resources.schemas())
    schema = kinds[document["apiVersion"]][document["kind"]]
    return list(_required(schema, document["spec"], ("spec",)))


def _required(schema: Mapping[str, Any], value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _required(schema.get("items", {}), each, (*path, number))
    elif isinstance(value, dict):
        yield from ((*path, name) for name in schema.get("required", ()) if name in value)
        for name, each in value.items():
            part = schema.get("properties", {}).get(name, {})
            yield from _required(part, each, (*path, name))
