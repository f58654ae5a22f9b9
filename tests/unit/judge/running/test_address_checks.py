"""Each check of IPAM providers passes for a good provider, and finds what a bad one does."""

from __future__ import annotations

import pytest

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks import ADDRESSES
from capsmith.judge.running.model import Skipped, Violated
from tests.unit.judge.running.addresses import open_session

CHECKS = {check.name: check for check in ADDRESSES}
FAULTS = [
    ("claim-allocated", "no-finalizer", "it has an address, but no finalizer"),
    ("address-content", "no-address", "does not appear to be an IPv4 or IPv6 address"),
    ("address-owners", "no-owner", "the BoxIPPool does not own it"),
    ("claim-foreign-pool", "takes-foreign", "although its pool is of another kind"),
    ("claim-missing-cluster", "ignores-clusters", "although its Cluster does not exist"),
    ("pool-of-addresses-ready", "not-ready", "the condition Ready is not True"),
    ("claim-paused", "ignores-pause", "although it has the annotation"),
    ("address-unique", "allocates-twice", "is also the address of"),
    ("claim-released", "keeps-addresses", "its claim is gone, but it still exists"),
    ("pool-exhausted", "silent", "neither an address nor a condition with the reason"),
    ("ipam-restart", "forgets", "it changed in a restart of the manager"),
    ("pool-in-use", "deletes-used", "it was deleted while its addresses were in use"),
]


@pytest.mark.parametrize("name", CHECKS)
def test_a_good_provider_passes(name: str) -> None:
    CHECKS[name].run(open_session())


@pytest.mark.parametrize(("name", "fault", "message"), FAULTS, ids=[row[0] for row in FAULTS])
def test_a_fault_is_found(name: str, fault: str, message: str) -> None:
    with pytest.raises(Violated) as caught:
        CHECKS[name].run(open_session(fault))
    assert message in str(caught.value)
    assert caught.value.subject


def test_fields_of_another_system_are_not_compared() -> None:
    """The contract does not say what fields a pool has, nor what they mean."""
    others: list[JSON] = [{"prefix": "198.51.100.0/24", "gateway": "main"}, {"prefix": 7}]
    for spec in others:
        CHECKS["address-content"].run(open_session(spec=spec))


def test_the_gateway_of_the_pool_is_compared() -> None:
    with pytest.raises(Violated, match=r"gateway is 192\.0\.2\.1, not 198\.51\.100\.1"):
        CHECKS["address-content"].run(open_session("other-gateway"))


def test_the_prefix_beside_ranges_is_compared() -> None:
    with pytest.raises(Violated, match="prefix is 24, not 26"):
        CHECKS["address-content"].run(
            open_session(spec={"addresses": ["198.51.100.10-13"], "prefix": 26})
        )


def test_every_check_has_a_fault() -> None:
    assert {row[0] for row in FAULTS} == set(CHECKS)


def test_a_pool_that_is_too_large_is_not_exhausted() -> None:
    session = open_session(size=100)
    with pytest.raises(Skipped, match="more than 32 addresses"):
        CHECKS["pool-exhausted"].run(session)
    assert session.history.names("IPAddress") == ["main-boxippool"]


def test_nothing_is_left() -> None:
    session = open_session()
    for check in CHECKS.values():
        if check.name != "pool-in-use":
            check.run(session)
    session.clean_up()
    version = "ipam.cluster.x-k8s.io/v1beta2"
    assert session.client.list(version, "IPAddressClaim", session.namespace) == []
    assert session.client.list(version, "IPAddress", session.namespace) == []
    assert session.client.find("v1", "Namespace", session.namespace) is None
