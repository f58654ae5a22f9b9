"""Your tests of HarbourIPPool: no API server is needed."""

from __future__ import annotations

from cluster_api_provider_harbour import PoolState
from cluster_api_provider_harbour._generated import ipam_testing, testing
from cluster_api_provider_harbour._generated.api.harbour_ip_pool import HarbourIPPoolSpec
from cluster_api_provider_harbour.controllers.harbour_ip_pool import HarbourIPPoolReconciler

FIELDS = {"addresses": ["192.0.2.0/24"], "prefix": 24, "gateway": "192.0.2.1"}
SPEC = testing.spec_from(HarbourIPPoolSpec, FIELDS)


def test_a_pool_hands_out_the_ranges_in_its_spec() -> None:
    state = HarbourIPPoolReconciler().reconcile_normal(ipam_testing.pool(SPEC, FIELDS))

    assert isinstance(state, PoolState)
    assert state.ready
    assert state.ranges is not None
    assert state.ranges.size > 0
