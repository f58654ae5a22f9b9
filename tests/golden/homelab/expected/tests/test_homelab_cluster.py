"""Your tests of HomelabCluster: no API server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_homelab import Gone, InfraClusterState
from cluster_api_provider_homelab._generated import testing
from cluster_api_provider_homelab._generated.api.homelab_cluster import HomelabClusterSpec
from cluster_api_provider_homelab.cloud import SimulatedCloud
from cluster_api_provider_homelab.controllers.homelab_cluster import HomelabClusterReconciler

SPEC = testing.spec_from(
    HomelabClusterSpec,
    {"rack": "example", "identityRef": {"kind": "HomelabIdentity", "name": "homelab"}},
)


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_a_cluster_is_created_once(cloud: SimulatedCloud) -> None:
    cluster = testing.infra_cluster(SPEC)

    first = HomelabClusterReconciler(cloud).reconcile_normal(cluster)
    again = HomelabClusterReconciler(cloud).reconcile_normal(cluster)

    assert isinstance(first, InfraClusterState)
    assert first == again
    assert cloud.find_cluster(cluster.external_id) is not None


def test_a_cluster_goes_away(cloud: SimulatedCloud) -> None:
    reconciler = HomelabClusterReconciler(cloud)
    cluster = testing.infra_cluster(SPEC)
    reconciler.reconcile_normal(cluster)

    answers = [reconciler.reconcile_delete(testing.infra_cluster_deletion(SPEC)) for _ in range(2)]

    assert answers == [Gone(), Gone()]
    assert cloud.find_cluster(cluster.external_id) is None
