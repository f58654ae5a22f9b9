"""A node's executables, built with Go like those of a lab. runc is a system package.

cert-manager is pinned to the last release whose commands other Go modules can require.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from capsmith.clusters.processes.tools.build import Progress, read_built
from capsmith.clusters.processes.tools.catalogue import (
    Binary,
    Module,
    build_stamps,
    kubernetes_version,
)

CERT_MANAGER_VERSION: Final = "v1.11.5"
"""cert-manager release that a node runs."""
CERT_MANAGER_MANIFEST: Final = "cert-manager.yaml"

_CONTAINERD_VERSION: Final = "v2.4.2"
_HERE = Path(__file__).parent / "tools"
_CONTAINERD = "github.com/containerd/containerd/v2"
_PLUGINS = "github.com/containernetworking/plugins/plugins"
_CERT_MANAGER = "github.com/cert-manager/cert-manager"


@dataclass(frozen=True)
class NodeTools:
    """The folders with the executables that a lab's node runs."""

    kubernetes: Path
    """Path to the folder with kubelet, kube-proxy and kube-scheduler."""
    containerd: Path
    """Path to the folder with containerd, its command-line client, and network plugins."""
    cert_manager: Path
    """Path to the folder with cert-manager's executables and manifest."""

    def to_data(self) -> dict[str, str]:
        """Return the paths as JSON data, keyed by attribute name."""
        return {name: str(path) for name, path in asdict(self).items()}

    @classmethod
    def of(cls, data: Mapping[str, str]) -> NodeTools:
        """Return the NodeTools that :meth:`to_data` serialized."""
        return cls(**{name: Path(path) for name, path in data.items()})


def build_node_tools(progress: Progress = lambda text: None) -> NodeTools:
    """Return a node's executables, building those that are missing.

    ``progress`` receives messages about the build.  Raises ToolsUnavailable if Go is missing or a
    build fails.
    """
    found = (read_built(module, _HERE, progress) for module in list_node_modules())
    return NodeTools(*found)


def build_containerd(progress: Progress = lambda text: None) -> Path:
    """Return the folder with containerd, its client, network plugins and the pause program.

    ``progress`` receives messages about the build.  Raises ToolsUnavailable if Go is missing or the
    build fails.
    """
    return read_built(_containerd(), _HERE, progress)


def list_node_modules() -> tuple[Module, Module, Module]:
    """Return the Go modules for a node's executables, in NodeTools' order."""
    return _kubernetes(), _containerd(), _cert_manager()


def _kubernetes() -> Module:
    stamps = build_stamps("k8s.io/component-base/version", kubernetes_version())
    names = ("kubelet", "kube-scheduler", "kube-proxy")
    return Module(
        folder="kubernetes",
        binaries=tuple(Binary(each, f"k8s.io/kubernetes/cmd/{each}", stamps) for each in names),
    )


def _containerd() -> Module:
    stamps = ((f"{_CONTAINERD}/version.Version", _CONTAINERD_VERSION),)
    names = ("containerd", "containerd-shim-runc-v2", "ctr")
    plugins = ("main/bridge", "ipam/host-local", "main/loopback")
    return Module(
        folder="containerd",
        binaries=(
            *(Binary(each, f"{_CONTAINERD}/cmd/{each}", stamps) for each in names),
            *(Binary(Path(each).name, f"{_PLUGINS}/{each}") for each in plugins),
            Binary("pause", "./pause"),
        ),
        # Snapshotters for other file systems are left out; one of them needs C libraries.
        flags=("-tags", "no_btrfs no_devmapper no_zfs no_aufs"),
        is_static=True,
    )


def _cert_manager() -> Module:
    stamps = ((f"{_CERT_MANAGER}/pkg/util.AppVersion", CERT_MANAGER_VERSION),)
    names = ("cainjector", "webhook", "controller")
    return Module(
        folder="cert-manager",
        binaries=(
            *(Binary(each, f"{_CERT_MANAGER}/cmd/{each}", stamps) for each in names),
            Binary("manifest", "./manifest", (("main.version", CERT_MANAGER_VERSION),)),
        ),
        printed={CERT_MANAGER_MANIFEST: "manifest"},
        sources_of=_CERT_MANAGER,
        is_static=True,
    )
