"""Unit tests of GlobalSkiffIPPoolReconciler; they need no API server."""

from __future__ import annotations

from capsmith_runtime.ipam import PoolState
from capsmith_runtime.testing import ipam as testing

from cluster_api_provider_skiff._generated.api.global_skiff_ip_pool import GlobalSkiffIPPoolSpec
from cluster_api_provider_skiff.controllers.global_skiff_ip_pool import GlobalSkiffIPPoolReconciler

FIELDS = {"addresses": ["192.0.2.0/24"], "prefix": 24, "gateway": "192.0.2.1"}
SPEC = testing.spec_from(GlobalSkiffIPPoolSpec, FIELDS)


def test_pool_allocates_from_the_ranges_in_its_spec() -> None:
    state = GlobalSkiffIPPoolReconciler().reconcile_normal(testing.pool(SPEC, FIELDS))

    assert isinstance(state, PoolState)
    assert state.ready
    assert state.ranges is not None
    assert state.ranges.size > 0
