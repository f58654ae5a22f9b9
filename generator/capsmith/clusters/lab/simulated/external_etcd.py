"""Control planes of kubeadm whose etcd is outside of the machines.

The control plane provider asks the etcd of each machine for its health, for which it would need a
kubelet that forwards ports.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.pki import Pki

_FOLDER = "/etc/kubernetes/pki/external"
_KIND = "KubeadmControlPlane"


def with_external_etcd(
    documents: list[JSON], etcd: str, pki: Pki, namespace: str, cluster: str
) -> list[JSON]:
    """Return the objects of a cluster with an external etcd, and the Secrets for it.

    Objects without a control plane of kubeadm are returned as they are.
    """
    found = [each for each in documents if each["kind"] == _KIND]
    if not found:
        return documents
    files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
    external = {key: f"{_FOLDER}/{name}" for key, name in files.items()}
    for each in found:
        spec = each["spec"].setdefault("kubeadmConfigSpec", {})
        configuration = spec.setdefault("clusterConfiguration", {})
        configuration["etcd"] = {"external": {"endpoints": [etcd], **external}}
    authority = {"tls.crt": pki.serving.cert}
    client = {**authority, "tls.key": pki.serving.key}
    secrets = {"etcd": authority, "apiserver-etcd-client": client}
    return [*documents, *(_secret(namespace, cluster, *each) for each in secrets.items())]


def _secret(namespace: str, cluster: str, purpose: str, files: Mapping[str, Path]) -> JSON:
    """Return the Secret with which the API server reaches etcd."""
    metadata = {"name": f"{cluster}-{purpose}", "namespace": namespace}
    data = {key: base64.b64encode(path.read_bytes()).decode() for key, path in files.items()}
    kind = {"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret"}
    return {**kind, "metadata": metadata, "data": data}
