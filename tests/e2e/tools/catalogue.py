"""What is built, from which Go module, and how it is stamped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

KUBERNETES_VERSION: Final = "v1.34.4"

CORE_RELEASES: Final = {"v1.13": "v1.13.6", "v1.10": "v1.10.7"}
"""Release series of the Cluster API core under test, and the release that stands for it."""


@dataclass(frozen=True)
class Binary:
    """One executable: its file name, its Go package and its version stamps."""

    name: str
    package: str
    stamps: tuple[tuple[str, str], ...] = ()

    @property
    def ldflags(self) -> str:
        return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in self.stamps)])


@dataclass(frozen=True)
class Module:
    """A folder with a go.mod, and what comes out of it."""

    folder: str
    binaries: tuple[Binary, ...]
    sources: dict[str, str] = field(default_factory=dict)
    """Module files kept beside the binaries: name -> path inside `sources_of`."""
    manifests: dict[str, str] = field(default_factory=dict)
    """Kustomize outputs kept beside the binaries: name -> folder inside `sources_of`."""
    sources_of: str = ""


def modules() -> dict[str, Module]:
    """All modules by name: `k8s`, and `capi-<series>` for each core release."""
    found = {"k8s": _kubernetes()}
    for series, release in CORE_RELEASES.items():
        found[f"capi-{series}"] = _cluster_api(series, release)
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


def _stamps(package: str, version: str) -> tuple[tuple[str, str], ...]:
    """Components compare versions with each other, so an unstamped build misbehaves."""
    major, minor, _ = version.removeprefix("v").split(".")
    values = {
        "gitMajor": major,
        "gitMinor": minor,
        "gitVersion": version,
        "gitTreeState": "clean",
    }
    return tuple((f"{package}.{name}", value) for name, value in values.items())
