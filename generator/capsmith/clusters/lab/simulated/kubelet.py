"""Simulate machines and their kubelets: every server becomes a Node.

Each Kubelet manages one set of servers, and only the Nodes that it created, so that several can
share a workload API server.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from capsmith.clusters.lab.simulated.loop import reconcile_each
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.nodes import build_healthy_conditions


@dataclass(frozen=True)
class Server:
    """A simulated machine."""

    id: str
    name: str
    provider_id: str
    cluster: str
    user_data: str | None
    version: str = ""
    """The version of its kubelet; empty if only the bootstrap data may name one."""


class ServerSource(Protocol):
    """Provides the machines that currently exist."""

    def servers(self, cluster: str | None = None) -> list[Server]:
        """Return the machines of one cluster, or of all clusters."""


CLOUD = "fakes.example.com/cloud"
"""Label of a Node: whose cloud its server is in."""
_FIRST_HEARTBEAT_SECONDS = 0.5
_NODE_INFO = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)
_VERSION = re.compile(r"(?m)^version: (\S+)$")
"""In bootstrap data of pools that need no Machine with a version."""


@dataclass
class _Registered:
    """A Node that exists, and when its status is reported next."""

    node: JSON
    interval: float
    due: float


class Kubelet:
    """Creates Nodes for servers, and deletes Nodes whose server is gone."""

    def __init__(
        self,
        client: KubeClient,
        cloud: ServerSource,
        name: str,
        log: Path,
        cluster: str | None = None,
    ) -> None:
        """Be the kubelets of the servers of one cluster, or of all."""
        self._cluster = cluster
        self._client = client
        self._cloud = cloud
        self._name = name
        self._log = log
        self._registered: dict[str, _Registered] = {}

    def tick(self) -> None:
        """Register new servers, remove Nodes of deleted ones, and report the others' status."""
        servers = {server.id: server for server in self._cloud.servers(self._cluster)}
        for gone in self._registered.keys() - servers.keys():
            # Core leaves Nodes alone while a Cluster is being deleted, so the cloud has to.
            self._client.delete(self._registered.pop(gone).node)
        new = sorted(servers.keys() - self._registered.keys())
        nodes = {id: self.node(servers[id]) for id in new}
        ids = {node["metadata"]["name"]: id for id, node in nodes.items()}
        reconcile_each(
            self._log,
            nodes.values(),
            lambda node: self._register(ids[node["metadata"]["name"]], node),
        )
        self._report()

    def node(self, server: Server) -> JSON:
        """Return the Node with which a server registers."""
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": server.name, "labels": {CLOUD: self._name}},
            "spec": {"providerID": server.provider_id},
            "status": _node_info(server),
        }

    def _register(self, id: str, node: JSON) -> None:
        spec = {name: node[name] for name in ("apiVersion", "kind", "metadata", "spec")}
        try:
            self._client.create(spec)
        except ApiError as error:
            if error.status != 409:
                raise
            self._adopt(node)
        now = time.monotonic()
        self._registered[id] = _Registered(node, _FIRST_HEARTBEAT_SECONDS, now)

    def _adopt(self, node: JSON) -> None:
        """Remove a Node of that name which belongs to another server; it has to go first."""
        existing = self._client.get("v1", "Node", node["metadata"]["name"])
        if existing["spec"].get("providerID") != node["spec"]["providerID"]:
            self._client.delete(existing)
            raise ApiError("POST", "node", 409, "a stale Node of that name is being removed")

    def _report(self) -> None:
        """Send heartbeats, often at first: core may look too early and rely on a later event.

        A Node that core has deleted stays deleted; its server follows or is gone already.
        """
        now = time.monotonic()
        for registered in self._registered.values():
            if now >= registered.due:
                registered.due = now + registered.interval
                registered.interval *= 2
                reconcile_each(self._log, [registered.node], self._report_status)

    def _report_status(self, node: JSON) -> None:
        status = {"conditions": build_healthy_conditions(), **node["status"]}
        self._client.patch(node, {"status": status}, "status")


def _node_info(server: Server) -> JSON:
    """Return the version, with which core decides whether an upgrade is complete; {} without."""
    found = _VERSION.search(server.user_data or "")
    version = found[1] if found is not None else server.version
    if not version:
        return {}
    others = dict.fromkeys(_NODE_INFO, "simulated")
    return {"nodeInfo": {**others, "kubeletVersion": version, "kubeProxyVersion": version}}
