"""Unit tests of KindleMirrorReconciler; they need no API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.resource import Deleted, ResourceState
from capsmith_runtime.testing import resource as testing

from cluster_api_bootstrap_provider_kindle._generated.api.kindle_mirror import KindleMirrorSpec
from cluster_api_bootstrap_provider_kindle.cloud import SimulatedCloud
from cluster_api_bootstrap_provider_kindle.controllers.kindle_mirror import KindleMirrorReconciler

SPEC = testing.spec_from(KindleMirrorSpec, {"upstream": "https://packages.example.com"})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_resource_is_created_once(cloud: SimulatedCloud) -> None:
    reconciler = KindleMirrorReconciler(cloud)
    resource = testing.resource(SPEC)

    results = [reconciler.reconcile_normal(resource) for _ in range(2)]

    assert results == [ResourceState(), ResourceState()]
    assert cloud.find_resource(resource.external_id) is not None


def test_resource_is_deleted(cloud: SimulatedCloud) -> None:
    reconciler = KindleMirrorReconciler(cloud)
    resource = testing.resource(SPEC)
    reconciler.reconcile_normal(resource)

    results = [reconciler.reconcile_delete(testing.resource_deletion(SPEC)) for _ in range(2)]

    assert results == [Deleted(), Deleted()]
    assert cloud.find_resource(resource.external_id) is None
