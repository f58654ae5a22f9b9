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
CLUSTER_SCOPED = ("ExtensionConfig",)
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
        if kind in CLUSTER_SCOPED:
            del metadata["namespace"]
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
    yield from _further(version)
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
    yield "KubeadmControlPlaneTemplate", f"controlplane.{core}", {
        "template": {"spec": {"kubeadmConfigSpec": config}}
    }
    control_plane = _reference(version, "KubeadmControlPlane", f"controlplane.{core}")
    yield "Cluster", core, {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
        "controlPlaneRef": control_plane,
        "infrastructureRef": _reference(version, "AcmeCluster"),
    }
    yield "Cluster of a class", core, {"topology": _topology(version)}
    yield "ClusterClass", core, _class(version)


def _further(version: str) -> Iterator[tuple[str, str, JSON]]:
    """Yield the specs of kinds that belong to no Machine."""
    expression = {"key": "app", "operator": "In", "values": ["a"]}
    yield "MachineDrainRule", "cluster.x-k8s.io", {
        "drain": {"behavior": "Drain", "order": 5},
        "machines": [{"selector": _LABELS}],
        "pods": [{"selector": {"matchExpressions": [expression]}}],
    }
    pool = {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "AcmeIPPool", "name": CLASS}
    yield "IPAddress", "ipam.cluster.x-k8s.io", {
        "address": "192.0.2.3",
        "prefix": 24,
        "gateway": "192.0.2.1",
        "claimRef": {"name": "absent"},
        "poolRef": pool,
    }
    if version != "v1beta1":
        service = {"name": "acme", "namespace": "acme-system", "port": 443, "path": "/hooks"}
        yield "ExtensionConfig", "runtime.cluster.x-k8s.io", {"clientConfig": {"service": service}}


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
