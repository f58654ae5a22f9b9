"""The Go modules, their executables and version stamps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

KUBERNETES_VERSION: Final = "v1.34.4"

CORE_RELEASES: Final = {"v1.13": "v1.13.6", "v1.10": "v1.10.7"}
"""Release series of Cluster API's core, and the release that is built of each."""

KUBERNETES: Final = "k8s"
"""The module with the servers of Kubernetes."""

BUILD_MINUTES: Final = {
    "kube-apiserver": 3,
    "kube-controller-manager": 1,
    "capi-manager": 1,
    "clusterctl": 2,
}
"""How long a build takes on two processors; one minute unless given."""

_KUBEADM_SERIES: Final = "v1.13"
KUBEADM: Final = f"kubeadm-{_KUBEADM_SERIES}"
"""The module with Cluster API's bootstrap and control plane providers for kubeadm."""


@dataclass(frozen=True)
class Binary:
    """One executable: its file name, its Go package and its version stamps."""

    name: str
    package: str
    stamps: tuple[tuple[str, str], ...] = ()

    @property
    def ldflags(self) -> str:
        """Flags of the Go linker."""
        return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in self.stamps)])


@dataclass(frozen=True)
class Module:
    """A folder with a go.mod, and what is built from it."""

    folder: str
    binaries: tuple[Binary, ...]
    sources: dict[str, str] = field(default_factory=dict)
    """Module files kept beside the binaries: name -> path inside `sources_of`."""
    manifests: dict[str, str] = field(default_factory=dict)
    """Kustomize outputs kept beside the binaries: name -> folder inside `sources_of`."""
    sources_of: str = ""
    flags: tuple[str, ...] = field(default=(), repr=False)
    """Further flags of `go build`."""


def modules() -> dict[str, Module]:
    """Return all modules by name: `k8s`, `capi-<series>` for each core release, and `KUBEADM`."""
    found = {"k8s": _kubernetes()}
    for series, release in CORE_RELEASES.items():
        found[f"capi-{series}"] = _cluster_api(series, release)
    found[KUBEADM] = _kubeadm()
    return found


def _kubernetes() -> Module:
    stamps = _stamps("k8s.io/component-base/version", KUBERNETES_VERSION)
    return Module(
        folder="k8s",
        binaries=(
            Binary("etcd", "go.etcd.io/etcd/server/v3"),
            Binary("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", stamps),
            Binary(
                "kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", stamps
            ),
        ),
    )


def _cluster_api(series: str, release: str) -> Module:
    stamps = _stamps("sigs.k8s.io/cluster-api/version", release)
    return Module(
        folder=f"capi-{series}",
        binaries=(
            Binary("capi-manager", "sigs.k8s.io/cluster-api", stamps),
            Binary("clusterctl", "sigs.k8s.io/cluster-api/cmd/clusterctl", stamps),
        ),
        sources={"metadata.yaml": "metadata.yaml"},
        manifests={"core-components.yaml": "config/default"},
        sources_of="sigs.k8s.io/cluster-api",
    )


def _kubeadm() -> Module:
    """Return the module apart from core's, which most commands need alone.

    Both require the same versions, so that Go compiles what they share once.
    """
    stamps = _stamps("sigs.k8s.io/cluster-api/version", CORE_RELEASES[_KUBEADM_SERIES])
    packages = {"bootstrap": "bootstrap/kubeadm", "control-plane": "controlplane/kubeadm"}
    return Module(
        folder=KUBEADM,
        binaries=tuple(
            Binary(f"{type}-manager", f"sigs.k8s.io/cluster-api/{package}", stamps)
            for type, package in packages.items()
        ),
        sources={"metadata.yaml": "metadata.yaml"},
        manifests={
            f"{type}-components.yaml": f"{package}/config/default"
            for type, package in packages.items()
        },
        sources_of="sigs.k8s.io/cluster-api",
    )


def _stamps(package: str, version: str) -> tuple[tuple[str, str], ...]:
    """Return the linker's stamps: components compare their versions with each other."""
    major, minor, _ = version.removeprefix("v").split(".")
    values = {
        "gitMajor": major,
        "gitMinor": minor,
        "gitVersion": version,
        "gitTreeState": "clean",
    }
    return tuple((f"{package}.{name}", value) for name, value in values.items())
