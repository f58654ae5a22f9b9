"""Lifecycle hooks for Clusters with a topology, and plans for their upgrades.

Core retries a call until the hook lets it proceed, and calls again after a restart, so hooks must
be idempotent (RX-06).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.extension.responses import (
    Codec,
    Proceed,
    RetryAfter,
    UpgradePlan,
    encode_decision,
    encode_message,
)
from capsmith_runtime.extension.variables import TopologyCluster, read_cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """Request about a Cluster that will be created, initialized, upgraded or deleted."""

    settings: Mapping[str, str]
    """The ExtensionConfig's settings."""
    cluster: TopologyCluster
    """The Cluster, without its status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeUpgradeRequest(ClusterRequest):
    """Request that core sends before it upgrades a Cluster, its control plane or its workers."""

    from_version: str
    """The current Kubernetes version."""
    to_version: str
    """The Kubernetes version after the upgrade that this request precedes."""
    control_plane_upgrades: Sequence[str]
    """Kubernetes versions of the control plane's remaining steps, or empty before core v1.12."""
    workers_upgrades: Sequence[str]
    """Kubernetes versions of the workers' remaining steps, or empty before core v1.12."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterUpgradeRequest(ClusterRequest):
    """Request that core sends after it has upgraded a Cluster, its control plane or its workers."""

    version: str
    """The Kubernetes version after the upgrade."""
    control_plane_upgrades: Sequence[str]
    """Kubernetes versions of the control plane's remaining steps, or empty before core v1.12."""
    workers_upgrades: Sequence[str]
    """Kubernetes versions of the workers' remaining steps, or empty before core v1.12."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlanRequest(ClusterRequest):
    """Request for the intermediate Kubernetes versions of a Cluster's upgrade."""

    from_control_plane_version: str
    """The current Kubernetes version of the control plane."""
    from_workers_version: str
    """The oldest Kubernetes version among all workers, or empty if there are no workers."""
    to_version: str
    """The Kubernetes version at the end of the upgrade."""


def _read_cluster_request(request: Object) -> ClusterRequest:
    return ClusterRequest(**_common_fields(request))


def _read_before_upgrade(request: Object) -> BeforeUpgradeRequest:
    return BeforeUpgradeRequest(
        **_common_fields(request),
        from_version=metadata.text(request, "fromKubernetesVersion"),
        to_version=metadata.text(request, "toKubernetesVersion"),
        control_plane_upgrades=_versions(request, "controlPlaneUpgrades"),
        workers_upgrades=_versions(request, "workersUpgrades"),
    )


def _read_after_upgrade(request: Object) -> AfterUpgradeRequest:
    return AfterUpgradeRequest(
        **_common_fields(request),
        version=metadata.text(request, "kubernetesVersion"),
        control_plane_upgrades=_versions(request, "controlPlaneUpgrades"),
        workers_upgrades=_versions(request, "workersUpgrades"),
    )


def _read_upgrade_plan(request: Object) -> UpgradePlanRequest:
    return UpgradePlanRequest(
        **_common_fields(request),
        from_control_plane_version=metadata.text(request, "fromControlPlaneKubernetesVersion"),
        from_workers_version=metadata.text(request, "fromWorkersKubernetesVersion"),
        to_version=metadata.text(request, "toKubernetesVersion"),
    )


def _write_proceed(result: Proceed, request: ClusterRequest) -> dict[str, Any]:
    return encode_message(result)


def _write_decision(result: Proceed | RetryAfter, request: ClusterRequest) -> dict[str, Any]:
    return encode_decision(result)


def _write_upgrade_plan(result: UpgradePlan, request: ClusterRequest) -> dict[str, Any]:
    return {
        "controlPlaneUpgrades": [{"version": version} for version in result.control_plane],
        "workersUpgrades": [{"version": version} for version in result.workers],
    }


def _common_fields(request: Object) -> dict[str, Any]:
    return {
        "settings": metadata.mapping(request, "settings"),
        "cluster": read_cluster(metadata.mapping(request, "cluster")),
    }


def _versions(request: Object, name: str) -> tuple[str, ...]:
    return tuple(metadata.text(step, "version") for step in metadata.items(request, name))


_PROCEED: Final = Codec(_read_cluster_request, (Proceed,), _write_proceed)
_CLUSTER: Final = Codec(_read_cluster_request, (Proceed, RetryAfter), _write_decision)
_BEFORE: Final = Codec(_read_before_upgrade, (Proceed, RetryAfter), _write_decision)
_AFTER: Final = Codec(_read_after_upgrade, (Proceed, RetryAfter), _write_decision)

BEFORE_CLUSTER_CREATE: Final = _CLUSTER
AFTER_CONTROL_PLANE_INITIALIZED: Final = _PROCEED
BEFORE_CLUSTER_UPGRADE: Final = _BEFORE
BEFORE_CONTROL_PLANE_UPGRADE: Final = _BEFORE
AFTER_CONTROL_PLANE_UPGRADE: Final = _AFTER
BEFORE_WORKERS_UPGRADE: Final = _BEFORE
AFTER_WORKERS_UPGRADE: Final = _AFTER
AFTER_CLUSTER_UPGRADE: Final = _AFTER
BEFORE_CLUSTER_DELETE: Final = _CLUSTER
GENERATE_UPGRADE_PLAN: Final = Codec(_read_upgrade_plan, (UpgradePlan,), _write_upgrade_plan)
