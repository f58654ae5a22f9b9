"""The Go modules with their executables and version stamps, from ``schemas/compatibility.yaml``.

Each module's go.mod is in the folder named after the module; ``./dev releases`` writes it for new
releases.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Final

from capsmith import resources
from capsmith.contract.compatibility import Compatibility, Project, Supported, load_compatibility

BUILD_MINUTES: Final = {
    "kube-apiserver": 3,
    "kube-controller-manager": 1,
    "capi-manager": 1,
    "clusterctl": 2,
}
"""Build time for executables, in minutes on two processors; one minute if not listed."""

KUBERNETES: Final = "k8s"
"""Name of the Kubernetes servers in a toolbox, for any release series."""

_CORE = "sigs.k8s.io/cluster-api"
_WITH_CORE_FOLDER = (1, 14)
"""First release series of core whose manager and manifests are in the folder ``core``."""


@cache
def load_releases() -> Compatibility:
    """Return the other projects' releases that capsmith supports.

    Raises UnreadableInput for invalid data.
    """
    return load_compatibility(resources.schemas())


def kubernetes_version(series: str = "") -> str:
    """Return the Kubernetes release that is built for a release series.

    If ``series`` is empty, the default series is used.
    """
    return _chosen(load_releases().kubernetes, series).release


def core_releases() -> dict[str, str]:
    """Return the core releases that are built, by release series, newest first."""
    return {each.series: each.release for each in reversed(load_releases().core.executed)}


def default_core() -> str:
    """Return the default release series of Cluster API core, such as ``v1.14``."""
    return load_releases().core.default.series


def has_kubeadm(series: str) -> bool:
    """Return whether the kubeadm providers are built for one of core's release series."""
    return _chosen(load_releases().core, series).kubeadm


def kubernetes_module(series: str = "") -> str:
    """Return the name of the Go module from which a release series' Kubernetes servers are built.

    If ``series`` is empty, the default series is used.
    """
    return f"{KUBERNETES}-{_chosen(load_releases().kubernetes, series).series}"


def core_module(series: str) -> str:
    """Return the name of the Go module that core and clusterctl are built from.

    ``series`` is their release series.
    """
    return f"capi-{series}"


def kubeadm_module(series: str) -> str:
    """Return the name of the Go module that the kubeadm providers are built from.

    ``series`` is their release series.
    """
    return f"kubeadm-{series}"


def _chosen(project: Project, series: str) -> Supported:
    return project.series(series) if series else project.default


@dataclass(frozen=True)
class Binary:
    """An executable to build: its file name, Go package and version stamps."""

    name: str
    package: str
    stamps: tuple[tuple[str, str], ...] = ()

    @property
    def ldflags(self) -> str:
        """Return the Go linker flags that set the version stamps."""
        return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in self.stamps)])


@dataclass(frozen=True)
class Module:
    """A folder with a go.mod, and the executables to build from it."""

    folder: str
    binaries: tuple[Binary, ...]
    sources: dict[str, str] = field(default_factory=dict)
    """Source files to copy next to the binaries, with their paths in `sources_of`."""
    manifests: dict[str, str] = field(default_factory=dict)
    """Kustomize outputs to write next to the binaries, with their folders in `sources_of`."""
    sources_of: str = ""
    flags: tuple[str, ...] = field(default=(), repr=False)
    """Additional flags to pass to `go build`."""
    is_static: bool = field(default=False, repr=False)
    """Whether to build without C libraries, for executables that are alone in an image."""
    is_inlined: bool = field(default=True, repr=False)
    """Whether the compiler inlines functions; without it, builds are faster and tools are slower.

    Kubernetes' servers use the most processor time of all tools, so they are inlined.
    """
    printed: dict[str, str] = field(default_factory=dict, repr=False)
    """Files to write next to the binaries, each with the binary that prints it.

    The binary's argument is the path to the sources of the module `sources_of`.
    """


def list_modules() -> dict[str, Module]:
    """Return all modules by name: for Kubernetes, core, and the kubeadm providers."""
    table = load_releases()
    found = [_kubernetes(each) for each in reversed(table.kubernetes.executed)]
    for each in reversed(table.core.executed):
        found.append(_cluster_api(each))
        if each.kubeadm:
            found.append(_kubeadm(each))
    return {module.folder: module for module in found}


def default_modules() -> list[str]:
    """Return the names of the modules for the tests that run for every change.

    These are Kubernetes' default release, all core releases, and the kubeadm providers for core's
    default release.
    """
    cores = [core_module(series) for series in core_releases()]
    return [KUBERNETES, *cores, kubeadm_module(default_core())]


def list_all_modules() -> list[str]:
    """Return the names of the modules for all tests, including the default Kubernetes."""
    return [KUBERNETES, *(name for name in list_modules() if not name.startswith(f"{KUBERNETES}-"))]


def _kubernetes(supported: Supported) -> Module:
    stamps = build_stamps("k8s.io/component-base/version", supported.release)
    servers = ("kube-apiserver", "kube-controller-manager")
    return Module(
        folder=kubernetes_module(supported.series),
        binaries=(
            Binary("etcd", "go.etcd.io/etcd/server/v3"),
            *(Binary(name, f"k8s.io/kubernetes/cmd/{name}", stamps) for name in servers),
        ),
    )


def _cluster_api(supported: Supported) -> Module:
    stamps = build_stamps(f"{_CORE}/version", supported.release)
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
        is_inlined=False,
    )


def _kubeadm(supported: Supported) -> Module:
    """Return the kubeadm module, separate from core's, which most commands need alone.

    Both modules require the same versions, so that Go compiles shared packages only once.
    """
    stamps = build_stamps(f"{_CORE}/version", supported.release)
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
        is_inlined=False,
    )


def build_stamps(package: str, version: str) -> tuple[tuple[str, str], ...]:
    """Return the variables for the linker to set, as (name, value).

    Components need version stamps because they compare their versions.
    """
    major, minor, _ = version.removeprefix("v").split(".")
    values = {
        "gitMajor": major,
        "gitMinor": minor,
        "gitVersion": version,
        "gitTreeState": "clean",
    }
    return tuple((f"{package}.{name}", value) for name, value in values.items())
