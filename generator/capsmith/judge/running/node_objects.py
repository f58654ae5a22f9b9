"""Nodes of test clusters: what kubelets register, for core to find by provider IDs."""

from __future__ import annotations

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.nodes import healthy_conditions

_CONFLICT = 409


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
    """Report a Node as healthy."""
    client.patch(obj, {"status": {"conditions": healthy_conditions()}}, "status")
