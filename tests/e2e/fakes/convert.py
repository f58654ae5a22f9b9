"""Put the helper kinds in the place of kubeadm's.

Templates and ClusterClasses of a generated provider name kubeadm, which needs real machines.
Every mapping that names a kubeadm kind is turned to the helper kind of the same role: objects
themselves, references by `apiVersion` or by `apiGroup`, and selectors of ClusterClass patches.
All other content stays as the provider renders it.
"""

from __future__ import annotations

from typing import Any, cast

from capsmith.clusters.processes.kube import JSON

from .manifests import API_VERSION, BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP

_KINDS = {
    "KubeadmControlPlane": ("FakeControlPlane", CONTROL_PLANE_GROUP),
    "KubeadmControlPlaneTemplate": ("FakeControlPlaneTemplate", CONTROL_PLANE_GROUP),
    "KubeadmConfig": ("FakeConfig", BOOTSTRAP_GROUP),
    "KubeadmConfigTemplate": ("FakeConfigTemplate", BOOTSTRAP_GROUP),
}


def without_kubeadm(documents: list[JSON]) -> list[JSON]:
    """Return the documents with kubeadm's kinds replaced by the helper kinds."""
    return [cast(JSON, _converted(document)) for document in documents]


def _converted(value: Any) -> Any:
    if isinstance(value, list):
        return [_converted(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _converted(item) for key, item in value.items()}
    if found.get("kind") in _KINDS:
        kind, group = _KINDS[found["kind"]]
        found["kind"] = kind
        if "apiGroup" in found:
            found["apiGroup"] = group
        if "apiVersion" in found:
            found["apiVersion"] = f"{group}/{API_VERSION}"
    return found
