"""Make kubeadm's clusters use the lab's etcd, because simulated machines do not run one.

The control plane provider would check the health of an etcd member on each machine through a
kubelet that forwards ports, which the simulation does not provide.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from capsmith.clusters.lab.objects import CLUSTER_NAME
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.manifests.parse import refuse_depth

_FOLDER = "/etc/kubernetes/pki/external"
_GROUP = "controlplane.cluster.x-k8s.io"
_KIND = "KubeadmControlPlane"
_PATHS = {
    _KIND: ("spec", "kubeadmConfigSpec", "clusterConfiguration"),
    f"{_KIND}Template": ("spec", "template", "spec", "kubeadmConfigSpec", "clusterConfiguration"),
}
_CLUSTER = "Cluster"
_TEMPLATES = ("cluster-template", "clusterclass-")
_NAMESPACE_VARIABLE, _NAME_VARIABLE = "${NAMESPACE}", "${CLUSTER_NAME}"


def add_external_etcd(
    documents: list[JSON], etcd: str, pki: Pki, namespace: str, cluster: str
) -> list[JSON]:
    """Return a cluster's objects, changed to use an external etcd, and the Secrets for that etcd.

    ``etcd`` is the etcd's URL.  If there is no kubeadm control plane, the objects are returned
    unchanged.
    """
    found = [each for each in documents if each["kind"] == _KIND]
    if not found:
        return documents
    for each in found:
        spec = each["spec"].setdefault("kubeadmConfigSpec", {})
        configuration = spec.setdefault("clusterConfiguration", {})
        configuration["etcd"] = _configuration(etcd)
    return [*documents, *_secrets(pki, namespace, cluster)]


def publish_etcd_secrets(client: KubeClient, pki: Pki, cluster: JSON) -> bool:
    """Create the Secrets for the lab's etcd that a Cluster of kubeadm lacks.

    Templates have them, but a program may rename only the Cluster of a template.  Returns whether
    there is nothing left to do, which is not known before the control plane exists.  Raises
    ApiError if a request fails; the next tick retries.
    """
    name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
    reference = cluster["spec"].get("controlPlaneRef") or {}
    if reference.get("kind") != _KIND:
        return False
    version = client.preferred_version(_GROUP)
    control_plane = client.find(version, _KIND, reference["name"], namespace)
    if control_plane is None:
        return False
    configuration: Any = control_plane["spec"].get("kubeadmConfigSpec") or {}
    for key in ("clusterConfiguration", "etcd", "external"):
        configuration = configuration.get(key) or {}
    for secret in _secrets(pki, namespace, name) if configuration else ():
        if client.find("v1", "Secret", secret["metadata"]["name"], namespace) is None:
            client.create(secret)
    return True


class EtcdTemplates:
    """Changes one release's templates so that kubeadm's clusters use the lab's etcd.

    Clusters that `clusterctl generate cluster` prints from them have control planes that become
    ready.
    """

    def __init__(self, folder: Path, etcd: str, pki: Pki) -> None:
        """Use the etcd at the URL ``etcd`` for the templates in ``folder``, a release's folder.

        If ``etcd`` is empty, or no template has a kubeadm control plane, no template is changed.
        """
        self._etcd = etcd
        self._pki = pki
        texts = [each.read_text() for name in _TEMPLATES for each in folder.glob(f"{name}*.yaml")]
        self._is_needed = bool(etcd) and any(_KIND in text for text in texts)

    def change(self, name: str, text: str) -> str:
        """Return the new content of the file ``name`` in the release.

        The lab's etcd is added to a template.  Other files are returned unchanged, as are templates
        that are nested too deeply, or valid YAML only after clusterctl has replaced their
        variables.
        """
        if not self._is_needed or not name.startswith(_TEMPLATES):
            return text
        try:
            refuse_depth(text)
            composed = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
        except (yaml.YAMLError, ValueError):
            return text
        nodes = [each for each in composed if isinstance(each, yaml.MappingNode)]
        for node in nodes:
            path = _PATHS.get(_kind_of(node))
            if path is not None:
                etcd = (_to_node("etcd"), _to_node(_configuration(self._etcd)))
                _descend(node, path).value.append(etcd)
        if any(_kind_of(node) == _CLUSTER for node in nodes):
            secrets = _secrets(self._pki, _NAMESPACE_VARIABLE, _NAME_VARIABLE)
            # These come first, because the control plane provider reads them in its first
            # reconcile.
            composed = [*map(_to_node, secrets), *nodes]
        # Nodes keep their styles, so quoted variables stay quoted and numbers do not become
        # strings.
        return str(yaml.serialize_all(composed, Dumper=yaml.CSafeDumper, explicit_start=True))


def _kind_of(node: yaml.MappingNode) -> str:
    return next((value.value for key, value in node.value if key.value == "kind"), "")


def _descend(node: yaml.MappingNode, path: Iterable[str]) -> yaml.MappingNode:
    """Return the mapping at ``path``, which is created where it is missing."""
    for name in path:
        found = next((value for key, value in node.value if key.value == name), None)
        if not isinstance(found, yaml.MappingNode):
            node.value = [(key, value) for key, value in node.value if key.value != name]
            found = yaml.MappingNode("tag:yaml.org,2002:map", [], flow_style=False)
            node.value.append((_to_node(name), found))
        node = found
    return node


def _to_node(value: Any) -> yaml.Node:
    (node,) = yaml.compose_all(yaml.dump(value, Dumper=yaml.CSafeDumper), Loader=yaml.CSafeLoader)
    return node


def _configuration(etcd: str) -> JSON:
    files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
    paths = {key: f"{_FOLDER}/{name}" for key, name in files.items()}
    return {"external": {"endpoints": [etcd], **paths}}


def _secrets(pki: Pki, namespace: str, cluster: str) -> list[JSON]:
    """Return the Secrets that the API server uses to connect to etcd."""
    authority = {"tls.crt": pki.serving.cert}
    client = {**authority, "tls.key": pki.serving.key}
    secrets = {"etcd": authority, "apiserver-etcd-client": client}
    return [_secret(namespace, cluster, *each) for each in secrets.items()]


def _secret(namespace: str, cluster: str, purpose: str, files: Mapping[str, Path]) -> JSON:
    # With this label, they are moved with their cluster.
    labels = {CLUSTER_NAME: cluster}
    metadata = {"name": f"{cluster}-{purpose}", "namespace": namespace, "labels": labels}
    data = {key: base64.b64encode(path.read_bytes()).decode() for key, path in files.items()}
    kind = {"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret"}
    return {**kind, "metadata": metadata, "data": data}
