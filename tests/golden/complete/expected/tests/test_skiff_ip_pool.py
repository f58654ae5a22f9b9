"""Unit tests of SkiffIPPoolReconciler; they need no API server."""

from __future__ import annotations

from capsmith_runtime.ipam import PoolState
from capsmith_runtime.testing import ipam as testing

from cluster_api_provider_skiff._generated.api.skiff_ip_pool import SkiffIPPoolSpec
from cluster_api_provider_skiff.controllers.skiff_ip_pool import SkiffIPPoolReconciler

FIELDS = {"addresses": ["192.0.2.0/24"], "prefix": 24, "gateway": "192.0.2.1"}
SPEC = testing.spec_from(SkiffIPPoolSpec, FIELDS)


def test_pool_allocates_from_the_ranges_in_its_spec() -> None:
    state = SkiffIPPoolReconciler().reconcile_normal(testing.pool(SPEC, FIELDS))

    assert isinstance(state, PoolState)
    assert state.ready
    assert state.ranges is not None
    assert state.ranges.size > 0
