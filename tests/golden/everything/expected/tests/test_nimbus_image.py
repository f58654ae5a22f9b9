"""Unit tests of NimbusImageReconciler; they need no API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.resource import Deleted, ResourceState
from capsmith_runtime.testing import resource as testing

from capn._generated.api.nimbus_image import NimbusImageSpec
from capn.cloud import SimulatedCloud
from capn.controllers.nimbus_image import NimbusImageReconciler

SPEC = testing.spec_from(
    NimbusImageSpec,
    {"url": "https://example.com", "identityRef": {"kind": "NimbusIdentity", "name": "nimbus"}},
)


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_resource_is_created_once(cloud: SimulatedCloud) -> None:
    reconciler = NimbusImageReconciler(cloud)
    resource = testing.resource(SPEC)

    results = [reconciler.reconcile_normal(resource) for _ in range(2)]

    assert results == [ResourceState(), ResourceState()]
    assert cloud.find_resource(resource.external_id) is not None


def test_resource_is_deleted(cloud: SimulatedCloud) -> None:
    reconciler = NimbusImageReconciler(cloud)
    resource = testing.resource(SPEC)
    reconciler.reconcile_normal(resource)

    results = [reconciler.reconcile_delete(testing.resource_deletion(SPEC)) for _ in range(2)]

    assert results == [Deleted(), Deleted()]
    assert cloud.find_resource(resource.external_id) is None
