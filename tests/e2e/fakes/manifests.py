"""Components of the helper providers, as a clusterctl repository serves them."""

from __future__ import annotations

from typing import Final

import yaml

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.repository import ClusterctlRepository, dump
from tests.e2e.harness.contract import ContractVersion

VERSION: Final = "v0.1.0"
API_VERSION: Final = "v1alpha1"
BOOTSTRAP_GROUP: Final = "bootstrap.fakes.example.com"
CONTROL_PLANE_GROUP: Final = "controlplane.fakes.example.com"
BOOTSTRAP_API: Final = f"{BOOTSTRAP_GROUP}/{API_VERSION}"
CONTROL_PLANE_API: Final = f"{CONTROL_PLANE_GROUP}/{API_VERSION}"

_ANYTHING: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_INT: JSON = {"type": "integer", "format": "int32"}
_STRING: JSON = {"type": "string"}
_BOOL: JSON = {"type": "boolean"}


def add_helpers(repository: ClusterctlRepository, contract: ContractVersion) -> None:
    """Put both helper providers into a clusterctl repository."""
    metadata = yaml.safe_dump(
        {
            "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
            "kind": "Metadata",
            "releaseSeries": [{"major": 0, "minor": 1, "contract": contract}],
        }
    )
    for label, documents in (
        ("bootstrap-fake", _bootstrap(contract)),
        ("control-plane-fake", _control_plane(contract)),
    ):
        components = label.removesuffix("fake") + "components.yaml"
        files = {components: dump(documents), "metadata.yaml": metadata}
        repository.add(label, VERSION, components, files)


def _bootstrap(contract: ContractVersion) -> list[JSON]:
    flag = _initialization("dataSecretCreated") if contract == "v1beta2" else {"ready": _BOOL}
    status = {"dataSecretName": _STRING, **flag}
    return _components(
        "capfake-bootstrap-system",
        BOOTSTRAP_GROUP,
        [
            _crd(contract, BOOTSTRAP_GROUP, "FakeConfig", _ANYTHING, status),
            _crd(contract, BOOTSTRAP_GROUP, "FakeConfigTemplate", _template(), {}),
        ],
    )


def _control_plane(contract: ContractVersion) -> list[JSON]:
    kind = "FakeControlPlane"
    crd = _crd(contract, CONTROL_PLANE_GROUP, kind, _control_plane_spec(), _status(contract))
    crd["spec"]["versions"][0]["subresources"]["scale"] = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    template = _crd(contract, CONTROL_PLANE_GROUP, f"{kind}Template", _template(), {})
    return _components("capfake-control-plane-system", CONTROL_PLANE_GROUP, [crd, template])


def _control_plane_spec() -> JSON:
    """Unknown fields are kept: converted kubeadm objects still carry theirs."""
    properties = {"replicas": _INT, "version": _STRING, "machineTemplate": _ANYTHING}
    return {**_ANYTHING, "properties": properties, "required": ["version", "machineTemplate"]}


def _status(contract: ContractVersion) -> JSON:
    common = {"replicas": _INT, "readyReplicas": _INT, "version": _STRING, "selector": _STRING}
    if contract == "v1beta1":
        flags = {"ready": _BOOL, "initialized": _BOOL}
        return {**common, **flags, "updatedReplicas": _INT, "unavailableReplicas": _INT}
    condition = {
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            **dict.fromkeys(("type", "status", "reason", "message"), _STRING),
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        },
    }
    return {
        **common,
        **_initialization("controlPlaneInitialized"),
        "availableReplicas": _INT,
        "upToDateReplicas": _INT,
        "conditions": {
            "type": "array",
            "items": condition,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    }


def _initialization(flag: str) -> JSON:
    properties = {flag: _BOOL}
    return {"initialization": {"type": "object", "minProperties": 1, "properties": properties}}


def _template() -> JSON:
    template = {"type": "object", "properties": {"metadata": _ANYTHING, "spec": _ANYTHING}}
    return {"type": "object", "required": ["template"], "properties": {"template": template}}


def _crd(contract: ContractVersion, group: str, kind: str, spec: JSON, status: JSON) -> JSON:
    plural = f"{kind.lower()}s"
    properties = {"spec": spec, "status": {"type": "object", "properties": status}}
    version = {
        "name": API_VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "labels": {f"cluster.x-k8s.io/{contract}": API_VERSION},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "categories": ["cluster-api"],
            },
            "versions": [version],
        },
    }


def _components(namespace: str, group: str, crds: list[JSON]) -> list[JSON]:
    """Core reaches the helpers' groups by aggregation only, as with any foreign group."""
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": f"{namespace}-aggregate-to-manager",
            "labels": {"cluster.x-k8s.io/aggregate-to-manager": "true"},
        },
        "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": verbs}],
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    return [space, *crds, role]
