"""Unit tests of LagoonClusterReconciler; they need no API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.infrastructure import Deleted, InfraClusterState
from capsmith_runtime.testing import infrastructure as testing

from cluster_api_provider_lagoon._generated.api.lagoon_cluster import LagoonClusterSpec
from cluster_api_provider_lagoon.cloud import SimulatedCloud
from cluster_api_provider_lagoon.controllers.lagoon_cluster import LagoonClusterReconciler

SPEC = testing.spec_from(
    LagoonClusterSpec, {"identityRef": {"kind": "LagoonIdentity", "name": "lagoon"}}
)


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_cluster_is_created_once(cloud: SimulatedCloud) -> None:
    cluster = testing.infra_cluster(SPEC)

    first = LagoonClusterReconciler(cloud).reconcile_normal(cluster)
    again = LagoonClusterReconciler(cloud).reconcile_normal(cluster)

    assert isinstance(first, InfraClusterState)
    assert first == again
    assert cloud.find_cluster(cluster.external_id) is not None


def test_cluster_is_deleted(cloud: SimulatedCloud) -> None:
    reconciler = LagoonClusterReconciler(cloud)
    cluster = testing.infra_cluster(SPEC)
    reconciler.reconcile_normal(cluster)

    results = [reconciler.reconcile_delete(testing.infra_cluster_deletion(SPEC)) for _ in range(2)]

    assert results == [Deleted(), Deleted()]
    assert cloud.find_cluster(cluster.external_id) is None
