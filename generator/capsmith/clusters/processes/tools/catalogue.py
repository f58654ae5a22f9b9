"""The Go modules, their executables and version stamps, by ``schemas/compatibility.yaml``.

The go.mod of each is in the folder of its name; ``./dev releases`` writes those of new releases.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Final

from capsmith import resources
from capsmith.contract.compatibility import (
    Compatibility,
    Project,
    Supported,
    load_compatibility,
)

BUILD_MINUTES: Final = {
    "kube-apiserver": 3,
    "kube-controller-manager": 1,
    "capi-manager": 1,
    "clusterctl": 2,
}
"""How long a build takes on two processors; one minute unless given."""

KUBERNETES: Final = "k8s"
"""The name by which a toolbox has the servers of Kubernetes, of whichever series."""

_CORE = "sigs.k8s.io/cluster-api"
_WITH_CORE_FOLDER = (1, 14)
"""The first series whose manager and manifests are in the folder ``core``."""


@cache
def load_releases() -> Compatibility:
    """Return the releases that capsmith is used with; raises UnreadableInput for broken data."""
    return load_compatibility(resources.schemas())


def kubernetes_version(series: str = "") -> str:
    """Return the release of Kubernetes that is built for a series, by default the newest."""
    return _chosen(load_releases().kubernetes, series).release


def core_releases() -> dict[str, str]:
    """Return the series of Cluster API's core, the newest first, and the release built of each."""
    return {each.series: each.release for each in reversed(load_releases().core.executed)}


def default_core() -> str:
    """Return the series of core that is used unless another one is chosen."""
    return load_releases().core.default.series


def has_kubeadm(series: str) -> bool:
    """Report whether the providers for kubeadm are built of a series of core."""
    return _chosen(load_releases().core, series).kubeadm


def kubernetes_module(series: str = "") -> str:
    """Return the name of the module with the servers of Kubernetes, by default of the newest."""
    return f"{KUBERNETES}-{_chosen(load_releases().kubernetes, series).series}"


def core_module(series: str) -> str:
    """Return the name of the module with core and clusterctl of a series."""
    return f"capi-{series}"


def kubeadm_module(series: str) -> str:
    """Return the name of the module with the bootstrap and control plane providers for kubeadm."""
    return f"kubeadm-{series}"


def _chosen(project: Project, series: str) -> Supported:
    return project.series(series) if series else project.default


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


def list_modules() -> dict[str, Module]:
    """Return all modules by name: of Kubernetes, of core, and of the providers for kubeadm."""
    table = load_releases()
    found = [_kubernetes(each) for each in reversed(table.kubernetes.executed)]
    for each in reversed(table.core.executed):
        found.append(_cluster_api(each))
        if each.kubeadm:
            found.append(_kubeadm(each))
    return {module.folder: module for module in found}


def default_modules() -> list[str]:
    """Return the names of the modules that the tests of each change need.

    Those are the default release of Kubernetes, all releases of core, and the providers for
    kubeadm of core's default release.
    """
    cores = [core_module(series) for series in core_releases()]
    return [KUBERNETES, *cores, kubeadm_module(default_core())]


def list_all_modules() -> list[str]:
    """Return the names of the modules that all tests need, with the default Kubernetes."""
    return [KUBERNETES, *(name for name in list_modules() if not name.startswith(f"{KUBERNETES}-"))]


def _kubernetes(supported: Supported) -> Module:
    stamps = _stamps("k8s.io/component-base/version", supported.release)
    servers = ("kube-apiserver", "kube-controller-manager")
    return Module(
        folder=kubernetes_module(supported.series),
        binaries=(
            Binary("etcd", "go.etcd.io/etcd/server/v3"),
            *(Binary(name, f"k8s.io/kubernetes/cmd/{name}", stamps) for name in servers),
        ),
    )


def _cluster_api(supported: Supported) -> Module:
    stamps = _stamps(f"{_CORE}/version", supported.release)
    in_folder = supported.order[:2] >= _WITH_CORE_FOLDER
    return Module(
        folder=core_module(supported.series),
        binaries=(
            Binary("capi-manager", f"{_CORE}/core" if in_folder else _CORE, stamps),
            Binary("clusterctl", f"{_CORE}/cmd/clusterctl", stamps),
        ),
        sources={"metadata.yaml": "metadata.yaml"},
        manifests={"core-components.yaml": f"{'core/' if in_folder else ''}config/default"},
        sources_of=_CORE,
    )


def _kubeadm(supported: Supported) -> Module:
    """Return the module apart from core's, which most commands need alone.

    Both require the same versions, so that Go compiles what they share once.
    """
    stamps = _stamps(f"{_CORE}/version", supported.release)
    packages = {"bootstrap": "bootstrap/kubeadm", "control-plane": "controlplane/kubeadm"}
    return Module(
        folder=kubeadm_module(supported.series),
        binaries=tuple(
            Binary(f"{type}-manager", f"{_CORE}/{package}", stamps)
            for type, package in packages.items()
        ),
        sources={"metadata.yaml": "metadata.yaml"},
        manifests={
            f"{type}-components.yaml": f"{package}/config/default"
            for type, package in packages.items()
        },
        sources_of=_CORE,
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
