"""Releases of core, the kubeadm providers and cert-manager for a node, and their images.

The manifests are upstream's; only the image tags are set.
"""

from __future__ import annotations

import re
from typing import Final

from capsmith.clusters.node.images import Image
from capsmith.clusters.node.tools import CERT_MANAGER_MANIFEST, CERT_MANAGER_VERSION, NodeTools
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.tools import Toolbox, core_releases
from capsmith.clusters.processes.tools.catalogue import core_module, has_kubeadm, kubeadm_module

_REGISTRY: Final = "registry.k8s.io/cluster-api"
_CERT_MANAGER: Final = "quay.io/jetstack/cert-manager"
# As in the Dockerfiles of these projects.
_USER = "65532:65532"
_CERT_MANAGER_USER = "1000:1000"
_STAGED = re.compile(r"gcr\.io/k8s-staging-cluster-api/([a-z-]+):main")


def release_manifest(text: str, version: str) -> str:
    """Return a manifest from the Cluster API repository with the images of release ``version``.

    The sources refer to images from the development branch; the upstream release build replaces
    them in the same way.
    """
    named = _STAGED.sub(rf"{_REGISTRY}/\1:{version}", text)
    return named.replace("imagePullPolicy: Always\n", "imagePullPolicy: IfNotPresent\n")


def add_releases(
    repository: ClusterctlRepository, tools: Toolbox, node_tools: NodeTools, series: str
) -> None:
    """Add cert-manager, core and the kubeadm providers to a clusterctl repository."""
    manifest = node_tools.cert_manager / CERT_MANAGER_MANIFEST
    repository.set_cert_manager(CERT_MANAGER_VERSION, manifest)
    version = core_releases()[series]
    modules = {"cluster-api": (core_module(series), "core-components.yaml")}
    if has_kubeadm(series):
        for type in ("bootstrap", "control-plane"):
            modules[f"{type}-kubeadm"] = (kubeadm_module(series), f"{type}-components.yaml")
    for label, (module, file) in modules.items():
        folder = tools.folders[module]
        files = {
            file: release_manifest((folder / file).read_text(encoding="utf-8"), version),
            "metadata.yaml": (folder / "metadata.yaml").read_text(encoding="utf-8"),
        }
        repository.add(label, version, file, files)


def list_images(tools: Toolbox, node_tools: NodeTools, series: str) -> list[Image]:
    """Return the images of cert-manager, core and the kubeadm providers."""
    version = core_releases()[series]
    binaries = {"cluster-api-controller": tools.path(core_module(series), "capi-manager")}
    if has_kubeadm(series):
        for type in ("bootstrap", "control-plane"):
            name = f"kubeadm-{type}-controller"
            binaries[name] = tools.path(kubeadm_module(series), f"{type}-manager")
    images = [
        Image(f"{_REGISTRY}/{name}:{version}", binary, "/manager", _USER)
        for name, binary in binaries.items()
    ]
    for name in ("controller", "webhook", "cainjector"):
        reference = f"{_CERT_MANAGER}-{name}:{CERT_MANAGER_VERSION}"
        path = f"/app/cmd/{name}/{name}"
        images.append(Image(reference, node_tools.cert_manager / name, path, _CERT_MANAGER_USER))
    return images
