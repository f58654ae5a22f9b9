"""Simulate machines, with kubeadm and kubelets that register a Node for every server.

Each Kubelet manages one set of servers, and only the Nodes that it created, so that several can
share a workload API server.  For kubeadm, etcd runs outside the machines: otherwise, the control
plane provider would check the health of an etcd member on each machine through a kubelet that
forwards ports, which the simulation does not provide.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from capsmith.clusters.lab.simulated.loop import reconcile_each
from capsmith.clusters.lab.simulated.pods import build_running_status
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.nodes import build_healthy_conditions


@dataclass(frozen=True)
class Server:
    """A simulated machine, for which a simulated kubelet registers a Node."""

    id: str
    name: str
    provider_id: str
    cluster: str
    user_data: str | None
    version: str = ""
    """Version of the machine's kubelet; empty if only the bootstrap data can specify it."""
    has_joined: bool = False
    """Whether the machine has already joined the cluster, so that it needs no valid token."""


class ServerSource(Protocol):
    """Provides the simulated machines that exist at the time of the call."""

    def servers(self, cluster: str | None = None) -> list[Server]:
        """Return one cluster's machines, or all clusters' if ``cluster`` is None."""


CLOUD = "fakes.example.com/cloud"
"""Label on a Node that identifies its server's cloud."""
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
    """A controller that creates Nodes for servers, and deletes the Nodes of deleted servers."""

    def __init__(
        self,
        client: KubeClient,
        cloud: ServerSource,
        name: str,
        log: Path,
        cluster: str | None = None,
    ) -> None:
        """Act as the kubelets on one cluster's servers, or on all if ``cluster`` is None.

        ``name`` identifies the Nodes that this kubelet creates.
        """
        self._cluster = cluster
        self._client = client
        self._cloud = cloud
        self._name = name
        self._log = log
        self._registered: dict[str, _Registered] = {}

    @property
    def has_nodes(self) -> bool:
        """Return whether any server has a Node."""
        return bool(self._registered)

    def tick(self) -> None:
        """Register new servers, delete the Nodes of deleted ones, and mark the others healthy."""
        servers = {server.id: server for server in self._cloud.servers(self._cluster)}
        for gone in self._registered.keys() - servers.keys():
            # Core ignores Nodes while a Cluster is being deleted, so the cloud must delete them.
            self._client.delete(self._registered[gone].node)
            # Only now, so that the next tick deletes the Node if this request failed.
            del self._registered[gone]
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
        """Return the Node for a server, without creating it."""
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
        # Like a kubelet, it leaves the conditions of others alone.
        self._client.merge(node, {"status": status}, "status")


def _node_info(server: Server) -> JSON:
    """Return node info with the version by which core detects a finished upgrade; {} if unknown."""
    found = _VERSION.search(server.user_data or "")
    version = found[1] if found is not None else server.version
    if not version:
        return {}
    others = dict.fromkeys(_NODE_INFO, "simulated")
    return {"nodeInfo": {**others, "kubeletVersion": version, "kubeProxyVersion": version}}


_FILE = "/run/kubeadm/kubeadm"
_NAMESPACE = "kube-system"
_ROLE = "node-role.kubernetes.io/control-plane"
_PROXY = "kube-proxy"
_STATIC_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


class KubeadmKubelet(Kubelet):
    """The kubelets on one cluster's servers, after kubeadm has run there."""

    def tick(self) -> None:
        """Update Nodes like :meth:`Kubelet.tick`, and delete the static Pods of deleted servers."""
        super().tick()
        names = {server.name for server in self._cloud.servers(self._cluster)}
        for pod in self._client.list("v1", "Pod", _NAMESPACE):
            # A Pod without a node has not been scheduled yet.
            if pod["spec"].get("nodeName", "") not in {"", *names}:
                self._client.delete(pod)

    def node(self, server: Server) -> JSON:
        """Return the Node for a server, with the role that its bootstrap data specifies."""
        node = super().node(server)
        if read_configuration(server).control_plane:
            node["metadata"]["labels"][_ROLE] = ""
            node["spec"]["taints"] = [{"key": _ROLE, "effect": "NoSchedule"}]
        return node

    def _register(self, id: str, node: JSON) -> None:
        """Join with a token, or initialize the cluster; then create the Node."""
        (server,) = (each for each in self._cloud.servers(self._cluster) if each.id == id)
        configuration = read_configuration(server)
        if configuration.token and not server.has_joined:
            # The Secret does not exist while the token is invalid; the next tick tries again.
            name = f"bootstrap-token-{configuration.token.partition('.')[0]}"
            self._client.get("v1", "Secret", name, _NAMESPACE)
        if configuration.cluster:
            self._create(_config_map(configuration.cluster))
            if server.version:
                self._create(_kube_proxy(server.version))
        if configuration.control_plane:
            # The control plane provider judges the health of its machines by these mirror Pods.
            for component in _STATIC_PODS:
                pod = _mirror_pod(component, server.name)
                self._create(pod)
                self._client.patch(pod, {"status": build_running_status()}, "status")
        # The Node comes last, because core considers a machine with a Node to be running, and
        # everything else must exist by then.
        super()._register(id, node)

    def _create(self, obj: JSON) -> None:
        try:
            self._client.create(obj)
        except ApiError as error:
            if error.status != 409:
                raise


@dataclass(frozen=True)
class Configuration:
    """The kubeadm configuration in a machine's bootstrap data."""

    cluster: str
    """ClusterConfiguration in YAML if the machine initializes the cluster; otherwise empty."""
    token: str
    """Bootstrap token if the machine joins the cluster; otherwise empty."""
    control_plane: bool


def read_configuration(server: Server) -> Configuration:
    """Read the kubeadm configuration from a server's cloud-config.

    The configuration is empty if the cloud-config does not come from kubeadm.
    """
    documents = _documents(server.user_data or "")
    cluster, join = (documents.get(f"{kind}Configuration") for kind in ("Cluster", "Join"))
    return Configuration(
        cluster=yaml.safe_dump(cluster) if cluster else "",
        token=join["discovery"]["bootstrapToken"]["token"] if join else "",
        control_plane=bool(cluster) or "controlPlane" in (join or {}),
    )


def _documents(user_data: str) -> dict[str, Any]:
    """Return the documents of kubeadm's file by kind; empty for other providers' data."""
    try:
        data = yaml.safe_load(user_data)
        files = data.get("write_files") or [] if isinstance(data, dict) else []
        texts = [file["content"] for file in files if file["path"].startswith(_FILE)]
        found = [document for text in texts for document in yaml.safe_load_all(text)]
        return {document["kind"]: document for document in found}
    # A provider's data can be anything; PyYAML raises most of these for values it cannot convert.
    except (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return {}


def _config_map(cluster: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kubeadm-config", "namespace": _NAMESPACE},
        "data": {"ClusterConfiguration": cluster},
    }


def _kube_proxy(version: str) -> JSON:
    """Return the DaemonSet that kubeadm creates; control plane providers keep its image current."""
    labels = {"k8s-app": _PROXY}
    container = {"name": _PROXY, "image": f"registry.k8s.io/{_PROXY}:{version}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": _PROXY, "namespace": _NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
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
