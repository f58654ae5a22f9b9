"""Your tests of LagoonControlPlane: no API server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_lagoon import Gone, ManagedControlPlaneState, Waiting
from cluster_api_provider_lagoon._generated import managed_control_plane_testing as testing
from cluster_api_provider_lagoon._generated.api.lagoon_control_plane import LagoonControlPlaneSpec
from cluster_api_provider_lagoon.cloud import SimulatedCloud
from cluster_api_provider_lagoon.controllers.lagoon_control_plane import (
    LagoonControlPlaneReconciler,
)
from cluster_api_provider_lagoon.hosted_control_planes import HostedControlPlanes

SPEC = testing.spec_from(LagoonControlPlaneSpec, {"version": "v1.34.0"})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_a_control_plane_is_created_once(cloud: SimulatedCloud) -> None:
    wanted = testing.control_plane(SPEC, version="v1.33.0")

    first = LagoonControlPlaneReconciler(cloud).reconcile_normal(wanted)
    again = LagoonControlPlaneReconciler(cloud).reconcile_normal(wanted)

    assert isinstance(first, ManagedControlPlaneState)
    assert first == again
    assert first.version == "v1.33.0"
    assert HostedControlPlanes(cloud).find(wanted.external_id) is not None


def test_a_control_plane_is_upgraded(cloud: SimulatedCloud) -> None:
    reconciler = LagoonControlPlaneReconciler(cloud)
    reconciler.reconcile_normal(testing.control_plane(SPEC, version="v1.33.0"))

    state = reconciler.reconcile_normal(testing.control_plane(SPEC, version="v1.34.0"))

    assert isinstance(state, ManagedControlPlaneState)
    assert state.version == "v1.34.0"


def test_the_infrastructure_comes_first(cloud: SimulatedCloud) -> None:
    wanted = testing.control_plane(SPEC, infrastructure_provisioned=False)

    assert isinstance(LagoonControlPlaneReconciler(cloud).reconcile_normal(wanted), Waiting)
    assert HostedControlPlanes(cloud).find(wanted.external_id) is None


def test_a_control_plane_goes_away(cloud: SimulatedCloud) -> None:
    reconciler = LagoonControlPlaneReconciler(cloud)
    wanted = testing.control_plane(SPEC)
    reconciler.reconcile_normal(wanted)

    answers = [reconciler.reconcile_delete(testing.control_plane_deletion(SPEC)) for _ in range(2)]

    assert answers == [Gone(), Gone()]
    assert HostedControlPlanes(cloud).find(wanted.external_id) is None
