"""Unit tests of LagoonPrefixReconciler; they need no API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.ipam import Allocation, Deleted, Waiting
from capsmith_runtime.testing import ipam as testing

from cluster_api_provider_lagoon._generated.api.lagoon_prefix import LagoonPrefixSpec
from cluster_api_provider_lagoon.controllers.lagoon_prefix import LagoonPrefixReconciler
from cluster_api_provider_lagoon.simulated_ipam import SimulatedIpam

FIELDS = {"prefixID": "example", "identityRef": {"kind": "LagoonIdentity", "name": "lagoon"}}
POOL = testing.pool(testing.spec_from(LagoonPrefixSpec, FIELDS), FIELDS)


@pytest.fixture
def ipam(tmp_path: Path) -> SimulatedIpam:
    return SimulatedIpam(tmp_path)


def test_claim_receives_the_same_address_each_time(ipam: SimulatedIpam) -> None:
    reconciler = LagoonPrefixReconciler(ipam)
    first, again = (reconciler.allocate(testing.address_claim(POOL)) for _ in range(2))
    other = reconciler.allocate(testing.address_claim(POOL, "other"))

    assert isinstance(first, Allocation)
    assert first == again
    assert first != other


def test_address_is_released_once(ipam: SimulatedIpam) -> None:
    reconciler = LagoonPrefixReconciler(ipam)
    reconciler.allocate(testing.address_claim(POOL))

    results = [reconciler.release(testing.address_release(POOL)) for _ in range(2)]

    assert results == [Deleted(), Deleted()]
    assert ipam.addresses() == []


def test_claims_wait_while_the_pool_is_exhausted(ipam: SimulatedIpam) -> None:
    reconciler = LagoonPrefixReconciler(ipam)
    claims = [testing.address_claim(POOL, f"claim-{number}") for number in range(254)]
    results = [reconciler.allocate(claim) for claim in claims]

    assert len({result for result in results if isinstance(result, Allocation)}) == 253
    assert isinstance(results[-1], Waiting)
