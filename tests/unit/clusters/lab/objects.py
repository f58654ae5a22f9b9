"""Objects of a cluster as an API server returns them."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


def cluster(phase: str = "Provisioning", *conditions: JSON) -> JSON:
    return _object("Cluster", "demo", {}, {"phase": phase, "conditions": list(conditions)})


def condition(type: str, status: str, message: str = "", reason: str = "") -> JSON:
    return {"type": type, "status": status, "message": message, "reason": reason}


def control_plane(replicas: int, ready: int) -> JSON:
    spec, status = {"replicas": replicas}, {"readyReplicas": ready}
    return _object("KubeadmControlPlane", "demo-cp", spec, status)


def managed_control_plane(*conditions: JSON, initialized: bool) -> JSON:
    status = {
        "externalManagedControlPlane": True,
        "initialization": {"controlPlaneInitialized": initialized},
        "conditions": list(conditions),
    }
    return _object("LagoonControlPlane", "demo-cp", {"version": "v1.36.0"}, status)


def deployment(replicas: int, ready: int) -> JSON:
    spec, status = {"replicas": replicas}, {"readyReplicas": ready}
    return _object("MachineDeployment", "demo-md-0", spec, status)


def machine(name: str, phase: str, *conditions: JSON, of: str = "KubeadmControlPlane") -> JSON:
    found = _object("Machine", name, {}, {"phase": phase, "conditions": list(conditions)})
    found["metadata"]["ownerReferences"] = [{"kind": of, "controller": True}]
    if of == "MachineSet":
        found["metadata"]["labels"] = {"cluster.x-k8s.io/deployment-name": "demo-md-0"}
    return found


def infrastructure(name: str, *, provisioned: bool) -> JSON:
    status = {"initialization": {"provisioned": provisioned}}
    return _object("AcmeMachine", name, {}, status)


def bootstrap(name: str, *conditions: JSON) -> JSON:
    return _object("AcmeConfig", name, {}, {"conditions": list(conditions)})


def _object(kind: str, name: str, spec: JSON, status: JSON) -> JSON:
    return {"kind": kind, "metadata": {"name": name}, "spec": spec, "status": status}
