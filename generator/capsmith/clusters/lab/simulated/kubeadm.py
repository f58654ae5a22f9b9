"""What kubeadm does on a machine with the bootstrap data of the provider for it.

etcd is outside of the machines: to reach a member on one, the control plane provider would need a
kubelet that forwards ports.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from capsmith.clusters.lab.simulated.loop import each
from capsmith.clusters.lab.simulated.server import Server, Servers
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.release import healthy_conditions

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
"""In the bootstrap data of pools: core asks their Nodes which version they run."""


# Each Kubelet tends one set of servers and only the Nodes that it made itself, so that several of
# them can share one workload API server.
@dataclass
class _Registered:
    """A Node that exists, and when its status is reported next."""

    node: JSON
    interval: float
    due: float


class Kubelet:
    """Creates Nodes for servers, deletes Nodes whose server is gone."""

    def __init__(
        self,
        client: KubeClient,
        cloud: Servers,
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
        """Register what is new, remove what is gone, report the status of the others."""
        servers = {server.id: server for server in self._cloud.servers(self._cluster)}
        for gone in self._registered.keys() - servers.keys():
            # Core leaves Nodes alone while a Cluster is being deleted, so the cloud has to.
            self._client.delete(self._registered.pop(gone).node)
        new = sorted(servers.keys() - self._registered.keys())
        nodes = {id: self.node(servers[id]) for id in new}
        ids = {node["metadata"]["name"]: id for id, node in nodes.items()}
        each(
            self._log,
            nodes.values(),
            lambda node: self._register(ids[node["metadata"]["name"]], node),
        )
        self._report()

    def node(self, server: Server) -> JSON:
        """Return the Node of a server when it registers."""
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
                each(self._log, [registered.node], self._report_status)

    def _report_status(self, node: JSON) -> None:
        status = {"conditions": healthy_conditions(), **node["status"]}
        self._client.patch(node, {"status": status}, "status")


def _node_info(server: Server) -> JSON:
    """Return the version that the bootstrap data name, if they do."""
    found = _VERSION.search(server.user_data or "")
    if found is None:
        return {}
    others = dict.fromkeys(_NODE_INFO, "simulated")
    return {"nodeInfo": {**others, "kubeletVersion": found[1], "kubeProxyVersion": found[1]}}


_FILE = "/run/kubeadm/kubeadm"
_NAMESPACE = "kube-system"
_ROLE = "node-role.kubernetes.io/control-plane"
_STATIC_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_READY = ("PodScheduled", "Initialized", "ContainersReady", "Ready")


class KubeadmKubelet(Kubelet):
    """The kubelets of one cluster, after kubeadm has run."""

    def tick(self) -> None:
        """Also remove the static Pods of servers that are gone."""
        super().tick()
        names = {server.name for server in self._cloud.servers(self._cluster)}
        for pod in self._client.list("v1", "Pod", _NAMESPACE):
            if pod["spec"]["nodeName"] not in names:
                self._client.delete(pod)

    def node(self, server: Server) -> JSON:
        """Return the Node with the role that its bootstrap data give it."""
        node = super().node(server)
        if configuration_of(server).control_plane:
            node["metadata"]["labels"][_ROLE] = ""
            node["spec"]["taints"] = [{"key": _ROLE, "effect": "NoSchedule"}]
        return node

    def _register(self, id: str, node: JSON) -> None:
        """Join with a token, or begin the cluster; the Node comes last."""
        (server,) = (each for each in self._cloud.servers(self._cluster) if each.id == id)
        configuration = configuration_of(server)
        if configuration.token:
            # Not found as long as the token is not valid; the next tick tries again.
            name = f"bootstrap-token-{configuration.token.partition('.')[0]}"
            self._client.get("v1", "Secret", name, _NAMESPACE)
        if configuration.cluster:
            self._create(_config_map(configuration.cluster))
        if configuration.control_plane:
            for component in _STATIC_PODS:
                pod = _mirror_pod(component, server.name)
                self._create(pod)
                self._client.patch(pod, {"status": _running()}, "status")
        super()._register(id, node)

    def _create(self, obj: JSON) -> None:
        try:
            self._client.create(obj)
        except ApiError as error:
            if error.status != 409:
                raise


@dataclass(frozen=True)
class Configuration:
    """What the bootstrap data of a machine tell kubeadm."""

    cluster: str
    """The ClusterConfiguration as YAML, where the cluster begins."""
    token: str
    """The bootstrap token, where a machine joins."""
    control_plane: bool


def configuration_of(server: Server) -> Configuration:
    """Read the configuration from the cloud-config of a server; empty if it is not kubeadm's."""
    documents = _documents(server.user_data or "")
    cluster, join = (documents.get(f"{kind}Configuration") for kind in ("Cluster", "Join"))
    return Configuration(
        cluster=yaml.safe_dump(cluster) if cluster else "",
        token=join["discovery"]["bootstrapToken"]["token"] if join else "",
        control_plane=bool(cluster) or "controlPlane" in (join or {}),
    )


def _documents(user_data: str) -> dict[str, Any]:
    """Return the documents of kubeadm's file by kind; nothing in data of another provider."""
    try:
        data = yaml.safe_load(user_data)
        files = data.get("write_files") or [] if isinstance(data, dict) else []
        texts = [file["content"] for file in files if file["path"].startswith(_FILE)]
        found = [document for text in texts for document in yaml.safe_load_all(text)]
        return {document["kind"]: document for document in found}
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        return {}


def _config_map(cluster: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kubeadm-config", "namespace": _NAMESPACE},
        "data": {"ClusterConfiguration": cluster},
    }


def _mirror_pod(component: str, node: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{component}-{node}",
            "namespace": _NAMESPACE,
            "labels": {"component": component, "tier": "control-plane"},
            "annotations": {"kubernetes.io/config.mirror": "simulated"},
        },
        "spec": {"nodeName": node, "containers": [{"name": component, "image": component}]},
    }


def _running() -> JSON:
    conditions = [{"type": name, "status": "True"} for name in _READY]
    return {"phase": "Running", "conditions": conditions}
