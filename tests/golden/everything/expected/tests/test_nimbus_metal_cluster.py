"""Unit tests of NimbusMetalClusterReconciler; they need no API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.infrastructure import Deleted, InfraClusterState
from capsmith_runtime.testing import infrastructure as testing

from capn._generated.api.nimbus_metal_cluster import NimbusMetalClusterSpec
from capn.cloud import SimulatedCloud
from capn.controllers.nimbus_metal_cluster import NimbusMetalClusterReconciler

SPEC = testing.spec_from(
    NimbusMetalClusterSpec,
    {"site": "example", "identityRef": {"kind": "NimbusIdentity", "name": "nimbus"}},
)


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_cluster_is_created_once(cloud: SimulatedCloud) -> None:
    cluster = testing.infra_cluster(SPEC)

    first = NimbusMetalClusterReconciler(cloud).reconcile_normal(cluster)
    again = NimbusMetalClusterReconciler(cloud).reconcile_normal(cluster)

    assert isinstance(first, InfraClusterState)
    assert first == again
    assert cloud.find_cluster(cluster.external_id) is not None


def test_cluster_is_deleted(cloud: SimulatedCloud) -> None:
    reconciler = NimbusMetalClusterReconciler(cloud)
    cluster = testing.infra_cluster(SPEC)
    reconciler.reconcile_normal(cluster)

    results = [reconciler.reconcile_delete(testing.infra_cluster_deletion(SPEC)) for _ in range(2)]

    assert results == [Deleted(), Deleted()]
    assert cloud.find_cluster(cluster.external_id) is None
