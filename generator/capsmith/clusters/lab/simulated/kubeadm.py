"""What kubeadm does on a machine with the bootstrap data of the provider for it.

etcd is outside of the machines: to reach a member on one, the control plane provider would need a
kubelet that forwards ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from capsmith.clusters.lab.simulated.kubelet import Kubelet
from capsmith.clusters.lab.simulated.server import Server
from capsmith.clusters.processes.kube import JSON, ApiError

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
