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
_DNS: Final = "v1.14.2"
_ETCD: Final = "3.6.8-0"
_PAUSE: Final = "3.10.2"
"""These three are what kubeadm of this release asks for."""
FLANNEL: Final = "v0.28.10"
FLANNEL_IMAGE: Final = f"ghcr.io/flannel-io/flannel:{FLANNEL}"
PROBE_IMAGE: Final = "capsmith.example/probe:v1"
_ROOT: Final = "0:0"
_IPTABLES: Final = ("iptables", "iptables-save", "iptables-restore")
_LIBRARIES: Final = ("libc.so.6", "libm.so.6", "libmnl.so.0", "libnftnl.so.11", "libxtables.so.12")


@dataclass(frozen=True)
class Components:
    """The folders with the executables."""

    kubernetes: Path
    """kubelet, kubeadm, kube-proxy, kube-scheduler, CoreDNS and the probe."""
    servers: Path
    """etcd, kube-apiserver and kube-controller-manager."""
    containerd: Path
    flannel: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return all folders, each named after the digest of its inputs."""
        return (self.kubernetes, self.servers, self.containerd, self.flannel)


@cache
def build_components() -> Components:
    """Return the executables; build what is missing."""

    def progress(text: str) -> None:
        print(text, flush=True)

    toolbox = required_toolbox("the image", ["k8s"], progress)
    return Components(
        kubernetes=read_built(_kubernetes(), _HERE, progress),
        servers=toolbox.folders["k8s"],
        containerd=build_containerd(progress),
        flannel=read_built(_flannel(), _HERE, progress),
    )


def list_images(components: Components, root: Path) -> list[Image]:
    """Return the images of kubeadm's Pods, of flannel and of the probe.

    `root` is a Debian whose iptables those get that need it.
    """
    version, iptables = kubernetes_version(), _list_iptables(root)
    own, servers = components.kubernetes, components.servers
    origins = {
        "kube-apiserver": servers,
        "kube-controller-manager": servers,
        "kube-scheduler": own,
        "kube-proxy": own,
    }
    images = [
        Image(
            f"{_REGISTRY}/{name}:{version}",
            folder / name,
            f"/usr/local/bin/{name}",
            _ROOT,
            iptables if name == "kube-proxy" else {},
        )
        for name, folder in origins.items()
    ]
    flanneld = components.flannel / "flanneld"
    return [
        *images,
        Image(f"{_REGISTRY}/etcd:{_ETCD}", servers / "etcd", "/usr/local/bin/etcd", _ROOT),
        Image(f"{_REGISTRY}/coredns/coredns:{_DNS}", own / "coredns", "/coredns", _ROOT),
        Image(f"{_REGISTRY}/pause:{_PAUSE}", components.containerd / "pause", "/pause", _ROOT),
        Image(FLANNEL_IMAGE, flanneld, "/opt/bin/flanneld", _ROOT, iptables),
        Image(PROBE_IMAGE, own / "probe", "/probe", _ROOT),
    ]


def _kubernetes() -> Module:
    stamps = build_stamps("k8s.io/component-base/version", kubernetes_version())
    names = ("kubeadm", "kubelet", "kube-proxy", "kube-scheduler")
    return Module(
        folder="components",
        binaries=(
            *(Binary(each, f"k8s.io/kubernetes/cmd/{each}", stamps) for each in names),
            Binary("coredns", "./coredns"),
            Binary("probe", "./probe"),
        ),
        is_static=True,
    )


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
