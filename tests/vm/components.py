"""The executables of the machines, built with Go from pinned modules, and the images of Pods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from capsmith.clusters.node.images import Image
from capsmith.clusters.node.tools import build_containerd
from capsmith.clusters.processes.tools import kubernetes_version
from capsmith.clusters.processes.tools.build import read_built
from capsmith.clusters.processes.tools.catalogue import (
    Binary,
    Module,
    build_stamps,
    core_module,
    default_core,
    kubeadm_module,
)
from tests.e2e.tools.required import required_toolbox

MODULES: Final = ["k8s", core_module(default_core()), kubeadm_module(default_core())]
"""What runs outside of the machines, for the management cluster."""
_HERE: Final = Path(__file__).parent
_REGISTRY: Final = "registry.k8s.io"
FLANNEL: Final = "v0.28.10"
FLANNEL_IMAGE: Final = f"ghcr.io/flannel-io/flannel:{FLANNEL}"
PROBE_IMAGE: Final = "capsmith.example/probe:v1"
_NODE: Final = ("kubeadm", "kubelet", "kube-proxy", "kube-scheduler")
_ROOT: Final = "0:0"
_IPTABLES: Final = ("iptables", "iptables-save", "iptables-restore")
_LIBRARIES: Final = ("libc.so.6", "libm.so.6", "libmnl.so.0", "libnftnl.so.11", "libxtables.so.12")


@dataclass(frozen=True)
class Release:
    """A release of Kubernetes, and the tags of the other images that its kubeadm requires."""

    version: str
    dns: str
    etcd: str
    pause: str


CURRENT: Final = Release(kubernetes_version(), dns="v1.14.2", etcd="3.6.8-0", pause="3.10.2")
PREVIOUS: Final = Release("v1.35.4", dns="v1.13.1", etcd="3.6.6-0", pause="3.10.1")
"""What clusters are upgraded from.  etcd, CoreDNS and pause are those of the current release."""
RELEASES: Final = (CURRENT, PREVIOUS)


@dataclass(frozen=True)
class Components:
    """The folders with the executables."""

    kubernetes: Path
    """kubelet, kubeadm, kube-proxy, kube-scheduler, CoreDNS and the probe."""
    servers: Path
    """etcd, kube-apiserver and kube-controller-manager."""
    previous: Path
    """All of Kubernetes' previous release."""
    containerd: Path
    flannel: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return all folders, each named after the digest of its inputs."""
        return (self.kubernetes, self.servers, self.previous, self.containerd, self.flannel)

    def kubernetes_of(self, release: Release) -> Path:
        """Return the folder with the kubelet and kubeadm of a release."""
        return self.kubernetes if release == CURRENT else self.previous

    def servers_of(self, release: Release) -> Path:
        """Return the folder with the API server and the controller manager of a release."""
        return self.servers if release == CURRENT else self.previous


@cache
def build_components() -> Components:
    """Return the executables; build what is missing."""

    def progress(text: str) -> None:
        print(text, flush=True)

    toolbox = required_toolbox("the image", ["k8s"], progress)
    return Components(
        kubernetes=read_built(_kubernetes(), _HERE, progress),
        servers=toolbox.folders["k8s"],
        previous=read_built(_previous(), _HERE, progress),
        containerd=build_containerd(progress),
        flannel=read_built(_flannel(), _HERE, progress),
    )


def list_images(components: Components, root: Path, release: Release = CURRENT) -> list[Image]:
    """Return the images of the Pods that machines of a release may run.

    These are all that its kubeadm requires, flannel and the probe, and what runs on all machines
    during an upgrade: kube-proxy, CoreDNS and pause of both releases.  ``root`` is a Debian whose
    iptables those get that need it.
    """
    iptables = _list_iptables(root)
    servers, kubernetes = components.servers_of(release), components.kubernetes_of(release)
    origins = {
        "kube-apiserver": servers,
        "kube-controller-manager": servers,
        "kube-scheduler": kubernetes,
    }
    images = [
        Image(_of_kubernetes(name, release), folder / name, f"/usr/local/bin/{name}", _ROOT)
        for name, folder in origins.items()
    ]
    etcd, flanneld = components.servers / "etcd", components.flannel / "flanneld"
    for each in RELEASES:
        proxy = components.kubernetes_of(each) / "kube-proxy"
        name = _of_kubernetes("kube-proxy", each)
        dns, pause = f"{_REGISTRY}/coredns/coredns:{each.dns}", f"{_REGISTRY}/pause:{each.pause}"
        images += [
            Image(name, proxy, "/usr/local/bin/kube-proxy", _ROOT, iptables),
            Image(dns, components.kubernetes / "coredns", "/coredns", _ROOT),
            Image(pause, components.containerd / "pause", "/pause", _ROOT),
        ]
    return [
        *images,
        Image(f"{_REGISTRY}/etcd:{release.etcd}", etcd, "/usr/local/bin/etcd", _ROOT),
        Image(FLANNEL_IMAGE, flanneld, "/opt/bin/flanneld", _ROOT, iptables),
        Image(PROBE_IMAGE, components.kubernetes / "probe", "/probe", _ROOT),
    ]


def _of_kubernetes(name: str, release: Release) -> str:
    return f"{_REGISTRY}/{name}:{release.version}"


def _kubernetes() -> Module:
    return Module(
        folder="components",
        binaries=(
            *_list_binaries(CURRENT, *_NODE),
            Binary("coredns", "./coredns"),
            Binary("probe", "./probe"),
        ),
        is_static=True,
    )


def _previous() -> Module:
    servers = ("kube-apiserver", "kube-controller-manager")
    return Module(
        folder="previous", binaries=_list_binaries(PREVIOUS, *_NODE, *servers), is_static=True
    )


def _list_binaries(release: Release, *names: str) -> tuple[Binary, ...]:
    stamps = build_stamps("k8s.io/component-base/version", release.version)
    return tuple(Binary(each, f"k8s.io/kubernetes/cmd/{each}", stamps) for each in names)


def _flannel() -> Module:
    package = "github.com/flannel-io/flannel"
    # A back end that is not used has code in C.
    linked = f"-s -w -X {package}/pkg/version.Version={FLANNEL} -extldflags=-static"
    return Module(
        folder="flannel",
        binaries=(Binary("flanneld", package),),
        flags=("-tags", "netgo,osusergo", "-ldflags", linked),
    )


def _list_iptables(root: Path) -> dict[str, Path]:
    """Return iptables with its extensions and libraries, by their paths in an image."""
    libraries = root / "usr/lib/x86_64-linux-gnu"
    found = {f"/usr/sbin/{name}": root / "usr/sbin/xtables-nft-multi" for name in _IPTABLES}
    loaded = [*(libraries / name for name in _LIBRARIES), *libraries.glob("xtables/*.so")]
    found |= {f"/{path.relative_to(root)}": path for path in loaded}
    loader = "ld-linux-x86-64.so.2"
    return {**found, f"/lib64/{loader}": libraries / loader}
