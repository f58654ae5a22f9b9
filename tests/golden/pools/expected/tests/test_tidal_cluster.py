"""Your tests of TidalCluster: no API server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_tidal import Gone, InfraClusterState
from cluster_api_provider_tidal._generated import testing
from cluster_api_provider_tidal._generated.api.tidal_cluster import TidalClusterSpec
from cluster_api_provider_tidal.cloud import SimulatedCloud
from cluster_api_provider_tidal.controllers.tidal_cluster import TidalClusterReconciler

SPEC = testing.spec_from(TidalClusterSpec, {"region": "north"})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_a_cluster_is_created_once(cloud: SimulatedCloud) -> None:
    cluster = testing.infra_cluster(SPEC)

    first = TidalClusterReconciler(cloud).reconcile_normal(cluster)
    again = TidalClusterReconciler(cloud).reconcile_normal(cluster)

    assert isinstance(first, InfraClusterState)
    assert first == again
    assert cloud.find_cluster(cluster.external_id) is not None


def test_a_cluster_goes_away(cloud: SimulatedCloud) -> None:
    reconciler = TidalClusterReconciler(cloud)
    cluster = testing.infra_cluster(SPEC)
    reconciler.reconcile_normal(cluster)

    answers = [reconciler.reconcile_delete(testing.infra_cluster_deletion(SPEC)) for _ in range(2)]

    assert answers == [Gone(), Gone()]
    assert cloud.find_cluster(cluster.external_id) is None
