"""Machines with addresses from pools: they get them, keep them in a move, and give them back."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.addresses import GROUP, NETWORKS, POOLS, SIX, add_pools, pools, with_addresses
from tests.e2e.harness.contract import ContractVersion
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_provider
from tests.e2e.releases import NEWEST, OLDEST, PREVIOUS
from tests.e2e.scenario import Scenario, one_scenario, wait_nothing_left
from tests.e2e.stack import Combination, Site, Stack
from tests.exhaustive import exhaustive

SECTIONS = ("infrastructure", "ipam")


def _combination(series: str, contract: ContractVersion) -> Combination:
    return Combination(series, contract, "complete", f"{series}-ipam", SECTIONS)


COMBINATIONS = (
    _combination(NEWEST, "v1beta2"),
    *exhaustive(_combination(OLDEST, "v1beta1")),
    *exhaustive(*(_combination(series, "v1beta2") for series in PREVIOUS)),
)


@pytest.fixture(scope="module", params=COMBINATIONS, ids=str)
def place(
    request: pytest.FixtureRequest, base: Base, workload: ApiServer, report: Report
) -> Iterator[tuple[Stack, Site]]:
    combination: Combination = request.param
    folder = base.folder / str(combination)
    provider = build_provider(
        combination.example, combination.contract, folder, combination.sections
    )
    stack = Stack(base, workload, combination, provider, report)
    try:
        yield stack, stack.start()
    finally:
        stack.stop()


@pytest.fixture
def scenario(request: pytest.FixtureRequest, place: tuple[Stack, Site]) -> Iterator[Scenario]:
    with one_scenario(*place, request.node.originalname) as made:
        yield made


def test_machines_have_addresses(scenario: Scenario, place: tuple[Stack, Site]) -> None:
    """One of each pool for each machine; the manager of the pools is killed in the middle.

    Proves: IP-08, IP-09, IP-10, IP-12, IP-13, IP-14, RB-04, SM-08, SM-09.
    """
    stack, site = place
    report, name = stack.report, stack.name
    add_pools(scenario)
    scenario.create(with_addresses(scenario, control_planes=1, workers=2))
    eventually(lambda: _addresses(scenario), what="a first address", interval=0.1)
    site.managers["ipam"].kill()
    site.managers["ipam"].start()
    with report.phase(name, "ipam: 3 machines with 2 addresses each, with a crash"):
        machines = scenario.wait_running(3)
    given = _check_given(scenario, machines)
    _wait_used(scenario, 3)
    with report.phase(name, "ipam: scale workers 2 -> 4 -> 1"):
        scenario.scale_workers(4)
        _check_given(scenario, scenario.wait_running(5))
        scenario.scale_workers(1)
        machines = scenario.wait_running(2)
        _wait_used(scenario, 2)
    left = _check_given(scenario, machines)
    kept = left.keys() & given.keys()
    assert {claim: left[claim] for claim in kept} == {claim: given[claim] for claim in kept}
    with report.phase(name, "ipam: delete, the pools at the same time"):
        for pool in pools(scenario):
            scenario.client.delete(pool)
        assert len(pools(scenario)) == 2, "a pool in use went away"
        scenario.delete()
        wait_nothing_left(scenario)
    eventually(lambda: not pools(scenario), what="the pools are gone")


def test_addresses_move(
    request: pytest.FixtureRequest, scenario: Scenario, place: tuple[Stack, Site]
) -> None:
    """Machines keep their addresses, and new ones get others; with ``--exhaustive`` also back.

    test_whole_cluster.py moves a cluster there and back for each change.

    Proves: IP-11, MV-02, MV-04, MV-06, MV-07, MV-08, SM-06, ST-11.
    """
    stack, _ = place
    report, name = stack.report, stack.name
    target = stack.add_site("second")
    add_pools(scenario)
    scenario.create(with_addresses(scenario, control_planes=1, workers=2))
    given = _check_given(scenario, scenario.wait_running(3))
    home, away = scenario.management, target.management
    ways = [("there", home, away)]
    if request.config.getoption("--exhaustive"):
        ways.append(("back", away, home))
    for label, source, goal in ways:
        with report.phase(name, f"ipam: clusterctl move {label}"):
            stack.clusterctl.move(source.kubeconfig, goal.kubeconfig, scenario.namespace)
        eventually(lambda: not _addresses(scenario), what="nothing left at the source")
        scenario.management = goal
        with report.phase(name, f"ipam: running again, {label}"):
            assert _check_given(scenario, scenario.wait_running(3)) == given
        eventually(lambda: _all_reported(scenario), what="claims are reported")
        _wait_used(scenario, 3)
        eventually(lambda: _all_owned(scenario), what="owners of the addresses")
    scenario.scale_workers(3)
    more = _check_given(scenario, scenario.wait_running(4))
    assert given.items() <= more.items()
    for pool in pools(scenario):
        scenario.client.delete(pool)
    scenario.delete()
    wait_nothing_left(scenario)
    # The last source keeps a copy of the pool that has no namespace (MV-04).
    source.client.delete(source.client.get(POOLS, SIX, "six"))
    eventually(lambda: source.client.find(POOLS, SIX, "six") is None, what="the copy is gone")


def _ipam(scenario: Scenario) -> str:
    return f"{GROUP}/{scenario.core.rpartition('/')[2]}"


def _addresses(scenario: Scenario) -> dict[str, str]:
    """Addresses by the name of their claim."""
    found = scenario.client.list(_ipam(scenario), "IPAddress", scenario.namespace)
    return {each["metadata"]["name"]: each["spec"]["address"] for each in found}


def _check_given(scenario: Scenario, machines: list[JSON]) -> dict[str, str]:
    """Each machine has one address of each pool, reports it, and no other machine has it."""

    return eventually(lambda: _given(scenario, machines), what="two addresses for each machine")


def _given(scenario: Scenario, machines: list[JSON]) -> dict[str, str]:
    found = _addresses(scenario)
    if len(found) != 2 * len(machines):
        raise NotYet(f"{len(found)} addresses for {len(machines)} machines")
    assert len(set(found.values())) == len(found)
    for machine in machines:
        infrastructure = scenario.infrastructure_of(machine)
        name = infrastructure["metadata"]["name"]
        own = [found.get(f"{name}-{index}", "") for index in range(2)]
        assert all(own), f"{name} is not among {sorted(found)}"
        for text, network in zip(own, NETWORKS.values(), strict=True):
            assert ip_address(text) in ip_network(network)
        shown = [each["address"] for each in infrastructure["status"].get("addresses", [])]
        assert shown[-2:] == own
    return found


def _wait_used(scenario: Scenario, count: int) -> None:
    def used() -> bool:
        states = [pool.get("status", {}) for pool in pools(scenario)]
        found = [state.get("addresses", {}).get("used") for state in states]
        if found != [count] * 2:
            raise NotYet(f"used: {found}, wanted {count} each")
        return True

    eventually(used, what="counts of the pools")


def _all_reported(scenario: Scenario) -> bool:
    claims = scenario.client.list(_ipam(scenario), "IPAddressClaim", scenario.namespace)
    return bool(claims) and all("addressRef" in claim.get("status", {}) for claim in claims)


def _all_owned(scenario: Scenario) -> bool:
    """Claim and pool own each address, by the uids that they have here."""
    client, version = scenario.client, _ipam(scenario)
    uids = {pool["kind"]: pool["metadata"]["uid"] for pool in pools(scenario)}
    for address in client.list(version, "IPAddress", scenario.namespace):
        claim = client.get(
            version, "IPAddressClaim", address["metadata"]["name"], scenario.namespace
        )
        owners = {o["kind"]: o["uid"] for o in address["metadata"].get("ownerReferences", [])}
        kind = address["spec"]["poolRef"]["kind"]
        assert owners == {"IPAddressClaim": claim["metadata"]["uid"], kind: uids[kind]}
    return True
