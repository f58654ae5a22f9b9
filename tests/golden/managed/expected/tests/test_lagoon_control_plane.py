"""Unit tests of LagoonControlPlaneReconciler; they need no API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.controlplane import Deleted, ManagedControlPlaneState, Waiting
from capsmith_runtime.testing import controlplane as testing

from cluster_api_provider_lagoon._generated.api.lagoon_control_plane import LagoonControlPlaneSpec
from cluster_api_provider_lagoon.cloud import SimulatedCloud
from cluster_api_provider_lagoon.controllers.lagoon_control_plane import (
    LagoonControlPlaneReconciler,
)
from cluster_api_provider_lagoon.hosted_control_planes import HostedControlPlanes

SPEC = testing.spec_from(LagoonControlPlaneSpec, {"version": "v1.36.0"})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_control_plane_is_created_once(cloud: SimulatedCloud) -> None:
    scope = testing.managed_control_plane(SPEC, version="v1.33.0")

    first = LagoonControlPlaneReconciler(cloud).reconcile_normal(scope)
    again = LagoonControlPlaneReconciler(cloud).reconcile_normal(scope)

    assert isinstance(first, ManagedControlPlaneState)
    assert first == again
    assert first.version == "v1.33.0"
    assert HostedControlPlanes(cloud).find(scope.external_id) is not None


def test_control_plane_is_upgraded(cloud: SimulatedCloud) -> None:
    reconciler = LagoonControlPlaneReconciler(cloud)
    reconciler.reconcile_normal(testing.managed_control_plane(SPEC, version="v1.33.0"))

    state = reconciler.reconcile_normal(testing.managed_control_plane(SPEC, version="v1.36.0"))

    assert isinstance(state, ManagedControlPlaneState)
    assert state.version == "v1.36.0"


def test_control_plane_waits_for_the_infrastructure(cloud: SimulatedCloud) -> None:
    scope = testing.managed_control_plane(SPEC, infrastructure_provisioned=False)

    assert isinstance(LagoonControlPlaneReconciler(cloud).reconcile_normal(scope), Waiting)
    assert HostedControlPlanes(cloud).find(scope.external_id) is None


def test_control_plane_is_deleted(cloud: SimulatedCloud) -> None:
    reconciler = LagoonControlPlaneReconciler(cloud)
    scope = testing.managed_control_plane(SPEC)
    reconciler.reconcile_normal(scope)

    results = [
        reconciler.reconcile_delete(testing.managed_control_plane_deletion(SPEC)) for _ in range(2)
    ]

    assert results == [Deleted(), Deleted()]
    assert HostedControlPlanes(cloud).find(scope.external_id) is None
