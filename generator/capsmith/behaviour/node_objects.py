"""Nodes of test clusters: what kubelets register, for core to find by provider IDs."""

from __future__ import annotations

import time

from capsmith.management.kube import JSON, ApiError, KubeClient

_CONFLICT = 409
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def node(name: str, id: str) -> JSON:
    """Return a Node with a provider ID."""
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"providerID": id}}


def register(client: KubeClient, obj: JSON) -> None:
    """Create a Node unless it exists."""
    try:
        client.create(obj)
    except ApiError as error:
        if error.status != _CONFLICT:
            raise


def report_ready(client: KubeClient, obj: JSON) -> None:
    """Report a Node as healthy; core needs all four conditions."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    statuses = {"Ready": "True", **dict.fromkeys(_PRESSURES, "False")}
    conditions = [
        {"type": kind, "status": status, "reason": "Simulated", "lastHeartbeatTime": now}
        for kind, status in statuses.items()
    ]
    client.patch(obj, {"status": {"conditions": conditions}}, "status")
