"""Your tests of SkiffCluster: no API server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_skiff import Gone, InfraClusterState
from cluster_api_provider_skiff._generated import testing
from cluster_api_provider_skiff._generated.api.skiff_cluster import SkiffClusterSpec
from cluster_api_provider_skiff.cloud import SimulatedCloud
from cluster_api_provider_skiff.controllers.skiff_cluster import SkiffClusterReconciler

SPEC = testing.spec_from(SkiffClusterSpec, {"region": "north"})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_a_cluster_is_created_once(cloud: SimulatedCloud) -> None:
    cluster = testing.infra_cluster(SPEC)

    first = SkiffClusterReconciler(cloud).reconcile_normal(cluster)
    again = SkiffClusterReconciler(cloud).reconcile_normal(cluster)

    assert isinstance(first, InfraClusterState)
    assert first == again
    assert cloud.find_cluster(cluster.external_id) is not None


def test_a_cluster_goes_away(cloud: SimulatedCloud) -> None:
    reconciler = SkiffClusterReconciler(cloud)
    cluster = testing.infra_cluster(SPEC)
    reconciler.reconcile_normal(cluster)

    answers = [reconciler.reconcile_delete(testing.infra_cluster_deletion(SPEC)) for _ in range(2)]

    assert answers == [Gone(), Gone()]
    assert cloud.find_cluster(cluster.external_id) is None
