"""The Go modules with their executables and version stamps, from ``schemas/compatibility.yaml``.

The go.mod of each module is in the folder of its name; ``./dev releases`` writes it for new
releases.
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
    """Return the supported releases.  Raises UnreadableInput for invalid data."""
    return load_compatibility(resources.schemas())


def kubernetes_version(series: str = "") -> str:
    """Return the Kubernetes release that is built for a series, by default the newest series."""
    return _chosen(load_releases().kubernetes, series).release


def core_releases() -> dict[str, str]:
    """Return the release that is built for each series of core, newest first."""
    return {each.series: each.release for each in reversed(load_releases().core.executed)}


def default_core() -> str:
    """Return the default series of core."""
    return load_releases().core.default.series


def has_kubeadm(series: str) -> bool:
    """Return whether the kubeadm providers are built for a series of core."""
    return _chosen(load_releases().core, series).kubeadm


def kubernetes_module(series: str = "") -> str:
    """Return the name of the module with the Kubernetes servers, by default the newest."""
    return f"{KUBERNETES}-{_chosen(load_releases().kubernetes, series).series}"


def core_module(series: str) -> str:
    """Return the name of the module with core and clusterctl of a series."""
    return f"capi-{series}"


def kubeadm_module(series: str) -> str:
    """Return the name of the module with the kubeadm providers of a series."""
    return f"kubeadm-{series}"


def _chosen(project: Project, series: str) -> Supported:
    return project.series(series) if series else project.default


@dataclass(frozen=True)
class Binary:
    """An executable: its file name, Go package and version stamps."""

    name: str
    package: str
    stamps: tuple[tuple[str, str], ...] = ()

    @property
    def ldflags(self) -> str:
        """Return the flags for the Go linker."""
        return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in self.stamps)])


@dataclass(frozen=True)
class Module:
    """A folder with a go.mod, and the executables built from it."""

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
    """Return all modules by name: Kubernetes, core, and the kubeadm providers."""
    table = load_releases()
    found = [_kubernetes(each) for each in reversed(table.kubernetes.executed)]
    for each in reversed(table.core.executed):
        found.append(_cluster_api(each))
        if each.kubeadm:
            found.append(_kubeadm(each))
    return {module.folder: module for module in found}


def default_modules() -> list[str]:
    """Return the names of the modules that tests of every change need.

    These are the default release of Kubernetes, all releases of core, and the kubeadm providers of
    the default release of core.
    """
    cores = [core_module(series) for series in core_releases()]
    return [KUBERNETES, *cores, kubeadm_module(default_core())]


def list_all_modules() -> list[str]:
    """Return the names of the modules that all tests together need, with the default Kubernetes."""
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
