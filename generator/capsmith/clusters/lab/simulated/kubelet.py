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
    """Version of the machine's kubelet; empty if only the bootstrap data may specify it."""


class ServerSource(Protocol):
    """Provides the machines that currently exist."""

    def servers(self, cluster: str | None = None) -> list[Server]:
        """Return the machines of one cluster, or of all clusters if ``cluster`` is None."""


CLOUD = "fakes.example.com/cloud"
"""Label of a Node that identifies the cloud of its server."""
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
"""Version in the bootstrap data of pools whose Machines need not specify a version."""


@dataclass
class _Registered:
    """An existing Node, and the time at which its status is reported next."""

    node: JSON
    interval: float
    due: float


class Kubelet:
    """Creates Nodes for servers, and deletes Nodes whose server no longer exists."""

    def __init__(
        self,
        client: KubeClient,
        cloud: ServerSource,
        name: str,
        log: Path,
        cluster: str | None = None,
    ) -> None:
        """Act as the kubelets for the servers of one cluster, or of all if ``cluster`` is None.

        ``name`` identifies this kubelet's Nodes.
        """
        self._cluster = cluster
        self._client = client
        self._cloud = cloud
        self._name = name
        self._log = log
        self._registered: dict[str, _Registered] = {}

    def tick(self) -> None:
        """Register new servers, remove the Nodes of deleted ones, and report the others' status."""
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
        """Return the Node that a server registers."""
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
        """Remove a Node of the same name that belongs to another server and blocks ``node``."""
        existing = self._client.get("v1", "Node", node["metadata"]["name"])
        if existing["spec"].get("providerID") != node["spec"]["providerID"]:
            self._client.delete(existing)
            raise ApiError("POST", "node", 409, "a stale Node of that name is being removed")

    def _report(self) -> None:
        """Send heartbeats, frequently at first: core may look too early and rely on a later event.

        A Node that core has deleted is not created again; its server is about to be deleted as
        well.
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
    """Return node info with the version by which core detects a finished upgrade; {} if unknown."""
    found = _VERSION.search(server.user_data or "")
    version = found[1] if found is not None else server.version
    if not version:
        return {}
    others = dict.fromkeys(_NODE_INFO, "simulated")
    return {"nodeInfo": {**others, "kubeletVersion": version, "kubeProxyVersion": version}}
