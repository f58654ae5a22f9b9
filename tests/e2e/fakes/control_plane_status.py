"""The status of a FakeControlPlane, computed entirely from its Machines."""

from __future__ import annotations

import time

from capsmith.clusters.processes.kube import JSON

from .control_plane_machines import is_outdated
from .dialect import CLUSTER_NAME, CONTROL_PLANE, Dialect


def status_of(
    dialect: Dialect, control_plane: JSON, infrastructure: JSON, machines: list[JSON]
) -> JSON:
    """Return the whole status; only times and flags depend on the previous status."""
    old = control_plane.get("status", {})
    ready = [each for each in machines if "nodeRef" in each.get("status", {})]
    # The API server is up as soon as one machine is. Waiting for its Node would be a deadlock:
    # core watches Nodes only once the control plane is initialized.
    initialized = any("providerID" in each["spec"] for each in machines)
    current = [each for each in machines if not is_outdated(each, control_plane, infrastructure)]
    cluster = control_plane["metadata"].get("labels", {}).get(CLUSTER_NAME, "")
    status: JSON = {
        "replicas": len(machines),
        "readyReplicas": len(ready),
        "selector": f"{CLUSTER_NAME}={cluster},{CONTROL_PLANE}",
    }
    if ready:
        versions = sorted((each["spec"]["version"] for each in ready), key=_version_key)
        status["version"] = versions[0]
    if dialect.contract == "v1beta1":
        status["updatedReplicas"] = len(current)
        status["unavailableReplicas"] = len(machines) - len(ready)
        if initialized or old.get("initialized"):
            status |= {"initialized": True, "ready": True}
        return status
    status["availableReplicas"] = len(ready)
    status["upToDateReplicas"] = len(current)
    if initialized or old.get("initialization"):
        status["initialization"] = {"controlPlaneInitialized": True}
    wanted = int(control_plane["spec"].get("replicas", 1))
    states = {
        "Available": bool(ready),
        "RollingOut": len(current) < len(machines),
        "ScalingUp": len(machines) < wanted,
        "ScalingDown": len(machines) > wanted,
    }
    status["conditions"] = _conditions(states, old.get("conditions", []))
    return status


def up_to_date_condition(machine: JSON, control_plane: JSON, infrastructure: JSON) -> JSON | None:
    """Return the condition that core expects from a Machine's owner; None if it is set."""
    state = not is_outdated(machine, control_plane, infrastructure)
    existing = machine.get("status", {}).get("conditions", [])
    wanted = _condition("UpToDate", state, existing)
    stored = next((each for each in existing if each["type"] == "UpToDate"), None)
    return None if stored and stored["status"] == wanted["status"] else wanted


def _conditions(states: dict[str, bool], existing: list[JSON]) -> list[JSON]:
    return [_condition(name, state, existing) for name, state in states.items()]


def _condition(name: str, state: bool, existing: list[JSON]) -> JSON:
    status = "True" if state else "False"
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for each in existing:
        if each["type"] == name and each["status"] == status:
            since = each["lastTransitionTime"]
    return {
        "type": name,
        "status": status,
        "reason": name if state else f"Not{name}",
        "message": "",
        "lastTransitionTime": since,
    }


def _version_key(version: str) -> tuple[int, ...]:
    core = version.removeprefix("v").partition("+")[0].partition("-")[0]
    return tuple(int(part) for part in core.split("."))
