"""Your tests of LagoonCluster: no API server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_lagoon import Gone, InfraClusterState
from cluster_api_provider_lagoon._generated import testing
from cluster_api_provider_lagoon._generated.api.lagoon_cluster import LagoonClusterSpec
from cluster_api_provider_lagoon.cloud import SimulatedCloud
from cluster_api_provider_lagoon.controllers.lagoon_cluster import LagoonClusterReconciler

SPEC = testing.spec_from(LagoonClusterSpec, {})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_a_cluster_is_created_once(cloud: SimulatedCloud) -> None:
    cluster = testing.infra_cluster(SPEC)

    first = LagoonClusterReconciler(cloud).reconcile_normal(cluster)
    again = LagoonClusterReconciler(cloud).reconcile_normal(cluster)

    assert isinstance(first, InfraClusterState)
    assert first == again
    assert cloud.find_cluster(cluster.external_id) is not None


def test_a_cluster_goes_away(cloud: SimulatedCloud) -> None:
    reconciler = LagoonClusterReconciler(cloud)
    cluster = testing.infra_cluster(SPEC)
    reconciler.reconcile_normal(cluster)

    answers = [reconciler.reconcile_delete(testing.infra_cluster_deletion(SPEC)) for _ in range(2)]

    assert answers == [Gone(), Gone()]
    assert cloud.find_cluster(cluster.external_id) is None
