"""Your tests of HarbourCluster: no API server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_harbour import Gone, InfraClusterState
from cluster_api_provider_harbour._generated import testing
from cluster_api_provider_harbour._generated.api.harbour_cluster import HarbourClusterSpec
from cluster_api_provider_harbour.cloud import SimulatedCloud
from cluster_api_provider_harbour.controllers.harbour_cluster import HarbourClusterReconciler

SPEC = testing.spec_from(
    HarbourClusterSpec,
    {"region": "north", "identityRef": {"kind": "HarbourIdentity", "name": "harbour"}},
)


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_a_cluster_is_created_once(cloud: SimulatedCloud) -> None:
    cluster = testing.infra_cluster(SPEC)

    first = HarbourClusterReconciler(cloud).reconcile_normal(cluster)
    again = HarbourClusterReconciler(cloud).reconcile_normal(cluster)

    assert isinstance(first, InfraClusterState)
    assert first == again
    assert cloud.find_cluster(cluster.external_id) is not None


def test_a_cluster_goes_away(cloud: SimulatedCloud) -> None:
    reconciler = HarbourClusterReconciler(cloud)
    cluster = testing.infra_cluster(SPEC)
    reconciler.reconcile_normal(cluster)

    answers = [reconciler.reconcile_delete(testing.infra_cluster_deletion(SPEC)) for _ in range(2)]

    assert answers == [Gone(), Gone()]
    assert cloud.find_cluster(cluster.external_id) is None
