"""Machine pools of both sorts: scaled up and down, killed, autoscaled, replaced, moved, deleted."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import eventually, steadily
from capsmith.contract.model import AuditedTest
from tests.e2e.access import check_shown
from tests.e2e.fakes.bootstrap import pool_data
from tests.e2e.harness.cloud import Event
from tests.e2e.harness.report import Report
from tests.e2e.least_privilege import POOLS, check_least_privilege
from tests.e2e.pool import (
    ELSEWHERE,
    MACHINES,
    WHOLE,
    Pool,
    Sort,
    add_pools,
    create_pool,
    health_check,
    set_variable,
)
from tests.e2e.provider import build_provider
from tests.e2e.releases import KUBERNETES, KUBERNETES_NEXT, NEWEST, OLDEST, PREVIOUS
from tests.e2e.scenario import Scenario, denied, one_scenario, wait_nothing_left
from tests.e2e.stack import Combination, Site, Stack
from tests.e2e.topology import wait_reconciled
from tests.exhaustive import exhaustive

COMBINATIONS = (
    Combination(NEWEST, "v1beta2", "pools", f"{NEWEST}-pools"),
    *exhaustive(Combination(OLDEST, "v1beta1", "pools", f"{OLDEST}-pools")),
    *exhaustive(*(Combination(each, "v1beta2", "pools", f"{each}-pools") for each in PREVIOUS)),
)
FEW = 4
# Many machines at a time keep a small computer busy: a lease renewed late is not to be a crash.
_FLAGS = (
    "--leader-elect-lease-duration=15s",
    "--leader-elect-renew-deadline=14s",
    "--leader-elect-retry-period=1s",
)
_QUIET_SECONDS = 3.0


@pytest.fixture(scope="module")
def many(request: pytest.FixtureRequest) -> int:
    """Return to how many machines a pool grows: core spends seconds of processor time on each."""
    return 30 if request.config.getoption("--exhaustive") else 14


SORTS = pytest.mark.parametrize("sort", [WHOLE, MACHINES], ids=lambda sort: sort.word)


@pytest.fixture(scope="module", params=COMBINATIONS, ids=str)
def pools(
    request: pytest.FixtureRequest, base: Base, workload: ApiServer, report: Report
) -> Iterator[tuple[Stack, Site]]:
    combination: Combination = request.param
    folder = base.folder / str(combination)
    provider = build_provider(combination.example, combination.contract, folder)
    provider = replace(provider, flags=_FLAGS)
    stack = Stack(base, workload, combination, provider, report)
    try:
        yield stack, stack.start()
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def second_site(pools: tuple[Stack, Site]) -> Site:
    stack, _ = pools
    return stack.add_site("second")


@pytest.fixture
def pool_scenario(request: pytest.FixtureRequest, pools: tuple[Stack, Site]) -> Iterator[Scenario]:
    sort: Sort | None = request.node.callspec.params.get("sort")
    name = f"{request.node.originalname}_{sort.word}" if sort else request.node.originalname
    with one_scenario(*pools, name) as made:
        yield made


@SORTS
def test_scale(pool_scenario: Scenario, pools: tuple[Stack, Site], sort: Sort, many: int) -> None:
    """Proves: MP-01, MP-03, MP-04, MP-07, MP-08, MP-09, MP-10, MP-12, MP-15, MP-19, SM-09."""
    scenario, (stack, site) = pool_scenario, pools
    pool, word = create_pool(scenario, sort), sort.word
    with stack.report.phase(stack.name, f"{word}: scale 0 -> {many}"):
        pool.scale_and_wait(sort, many)
    assert len(set(pool.created())) == len(pool.created()) == many
    _check_bootstrap_data(pool, sort, many)
    pool.wait_quiet()
    with stack.report.phase(stack.name, f"{word}: scale {many} -> {FEW}"):
        pool.scale_and_wait(sort, FEW)
    with stack.report.phase(stack.name, f"{word}: scale {FEW} -> {many // 2}, killed meanwhile"):
        pool.scale(many // 2)
        delay = random.uniform(0, 1.0 if sort.machines else 0.2)
        print(f"the controllers are killed after {delay:.3f} s")
        time.sleep(delay)
        site.controllers.kill()
        site.controllers.start()
        pool.wait_all(sort, many // 2)
    made = pool.created()
    assert len(made) == len(set(made)) == many + 1 + many // 2 - FEW, "something was made twice"
    with stack.report.phase(stack.name, f"{word}: delete the pool"):
        pool_servers = len(scenario.servers()) - 1
        assert pool_servers == many // 2
        pool.delete()
        eventually(lambda: len(scenario.servers()) == 1, what="its servers gone")
    eventually(lambda: not _pooled(scenario), what="its Machines gone")
    scenario.delete()
    wait_nothing_left(scenario)


def test_autoscaled_group(pool_scenario: Scenario) -> None:
    """Proves: MP-17."""
    scenario, pool = pool_scenario, create_pool(pool_scenario, WHOLE)
    report, stack = scenario.stack.report, scenario.stack.name
    pool.scale_and_wait(WHOLE, 3)
    pool.scale_elsewhere("an-autoscaler")
    with report.phase(stack, "whole: an autoscaler elsewhere, 3 -> 6"):
        pool.resize_group(6)
        pool.wait(6)
    pool.note({ELSEWHERE: None})
    pool.scale_and_wait(WHOLE, 2)


def test_autoscaled_machines(pool_scenario: Scenario) -> None:
    """Proves: MP-17."""
    pool = create_pool(pool_scenario, MACHINES)
    pool.scale_and_wait(MACHINES, 3)
    pool.scale_elsewhere("an-autoscaler")
    pool_scenario.client.delete(pool.machines()[0])
    pool.wait_all(MACHINES, 2)
    pool.note({ELSEWHERE: "false"})
    pool.scale_and_wait(MACHINES, 4)


def test_replacement(pool_scenario: Scenario) -> None:
    """Proves: MP-10, MP-11, IM-21."""
    scenario, pool = pool_scenario, create_pool(pool_scenario, MACHINES)
    report, stack = scenario.stack.report, scenario.stack.name
    pool.scale_and_wait(MACHINES, FEW)
    with report.phase(stack, f"machines: a new spec replaces {FEW} machines"):
        before = pool.names()
        pool.change_infrastructure({"diskGiB": 40})
        pool.wait_replaced(before, FEW)
    for machine in pool.machines():
        assert scenario.infrastructure_of(machine)["spec"]["diskGiB"] == 40
    with report.phase(stack, f"machines: a new version replaces {FEW} machines"):
        before = pool.names()
        pool.change({"template": {"spec": {"version": KUBERNETES_NEXT}}})
        pool.wait_replaced(before, FEW)
    made = pool.created()
    assert len(made) == len(set(made)) == 3 * FEW


@pytest.mark.exhaustive
def test_marked_machine_goes_first(pool_scenario: Scenario) -> None:
    """Proves: MP-10."""
    pool = create_pool(pool_scenario, MACHINES)
    pool.scale_and_wait(MACHINES, 4)
    marked = min(pool.machines(), key=lambda machine: str(machine["metadata"]["name"]))
    mark = {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}
    pool_scenario.client.patch(marked, {"metadata": mark})
    pool.wait_quiet()
    pool.scale_and_wait(MACHINES, 3)
    assert marked["metadata"]["name"] not in pool.names()


@pytest.mark.exhaustive
def test_pause(pool_scenario: Scenario, pools: tuple[Stack, Site]) -> None:
    """Proves: MP-20, SM-01."""
    pool, (_, site) = create_pool(pool_scenario, MACHINES), pools
    pool.scale_and_wait(MACHINES, 2)
    site.wait_leading()
    pool_scenario.pause()
    if pool_scenario.stack.provider.contract == "v1beta2":
        eventually(pool.is_paused, what="the pause is reported")
    pool.wait_quiet()
    before = pool_scenario.journal()
    pool.scale(4)
    pool_scenario.client.delete(pool.infrastructure())
    steadily(lambda: _untouched(pool_scenario, before), seconds=_QUIET_SECONDS)
    pool_scenario.resume()
    eventually(lambda: len(pool_scenario.servers()) == 1, what="the pool is gone")


# test_whole_cluster.py moves clusters, and test_scale kills managers that then find their pools.
@pytest.mark.exhaustive
@SORTS
def test_move(pool_scenario: Scenario, second_site: Site, sort: Sort) -> None:
    """Proves: MP-20, MV-02, MV-06, MV-08, SM-09."""
    scenario, target = pool_scenario, second_site.management
    pool = create_pool(scenario, sort)
    pool.scale_and_wait(sort, 3)
    before, journal = pool.ids(), scenario.journal()
    scenario.stack.clusterctl.move(
        scenario.management.kubeconfig, target.kubeconfig, scenario.namespace
    )
    scenario.management = target
    pool.wait_all(sort, 3)
    assert pool.ids() == before
    steadily(lambda: _untouched(scenario, journal), seconds=_QUIET_SECONDS)
    pool.scale_and_wait(sort, 1)
    scenario.delete()
    wait_nothing_left(scenario)


def test_health_check(pool_scenario: Scenario) -> None:
    """What a MachineHealthCheck gives up is replaced; with a name that is no label (MP-08).

    Proves: MP-08, MP-10.
    """
    scenario = pool_scenario
    pool = create_pool(scenario, MACHINES, name="a-long-name-" * 6 + "of-a-machine-pool")
    pool.scale_and_wait(MACHINES, 3)
    scenario.client.apply(health_check(scenario))
    victim = pool.machines()[0]
    mark = {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}
    scenario.client.patch(victim, {"metadata": mark})
    eventually(lambda: victim["metadata"]["name"] not in pool.names(), what="it goes")
    pool.wait_all(MACHINES, 3)


def test_topology(pool_scenario: Scenario, pools: tuple[Stack, Site]) -> None:
    """Pools of both sorts from a class; a change of the class arrives in the pools.

    Proves: MP-18, IM-13, IM-14, IM-16, TP-01, TP-10, RB-06, RB-07.
    """
    scenario, report = pool_scenario, pool_scenario.stack.report
    documents = scenario.render(1, 0, flavor=scenario.stack.provider.topology_flavor)
    add_pools(documents, {"tidalmachinepool": 2, "tidalnodepool": 2})
    with report.phase(scenario.stack.name, "topology with pools: create"):
        scenario.create(documents)
        whole, machines = (Pool.of_class(scenario, sort.kind.lower()) for sort in (WHOLE, MACHINES))
        whole.wait_all(WHOLE, 2)
        machines.wait_all(MACHINES, 2)
        wait_reconciled(scenario)
    _check_templates(scenario)
    before = machines.names()
    with report.phase(scenario.stack.name, "topology with pools: a variable replaces machines"):
        set_variable(scenario, "image", "another")
        machines.wait_replaced(before, 2)
        wait_reconciled(scenario)
    for pool in (whole, machines):
        eventually(partial(pool.has_image, "another"), what="image")
    whole.wait_all(WHOLE, 2)
    scenario.delete()
    scenario.delete_classes()
    wait_nothing_left(scenario)
    check_shown(scenario.stack.provider, scenario.management, AuditedTest.POOLS)
    check_least_privilege(pools[1], "infrastructure", explained=POOLS)


def _check_bootstrap_data(pool: Pool, sort: Sort, many: int) -> None:
    """Each server has the pool's data; later ones those of their day (MP-19, IM-21)."""
    scenario = pool.scenario
    data = pool_data(scenario.name, pool.name, KUBERNETES)
    assert {server.user_data for server in pool.servers()} == {data}
    template = pool.machine_pool()["spec"]["template"]["spec"]
    name = template["bootstrap"]["dataSecretName"]
    secret = scenario.client.get("v1", "Secret", name, scenario.namespace)
    scenario.client.patch(secret, {"stringData": {"value": "refreshed"}})
    pool.scale_and_wait(sort, many + 1)
    assert [server.user_data for server in pool.servers()].count("refreshed") == 1
    scenario.client.patch(secret, {"stringData": {"value": data}})
    pool.scale_and_wait(sort, many)


def _untouched(scenario: Scenario, before: list[Event]) -> None:
    assert scenario.journal() == before


def _pooled(scenario: Scenario) -> list[str]:
    found = [machine["metadata"] for machine in scenario.machines()]
    return [each["name"] for each in found if "cluster.x-k8s.io/pool-name" in each["labels"]]


def _check_templates(scenario: Scenario) -> None:
    """Templates of pools cannot change; those of machines tell what a machine offers."""
    version = "infrastructure.cluster.x-k8s.io/v1alpha1"
    for kind in (WHOLE.kind, MACHINES.kind):
        for template in scenario.client.list(version, f"{kind}Template", scenario.namespace):
            change = {"spec": {"template": {"spec": {"image": "changed"}}}}
            assert "cannot be changed" in denied(scenario.client, template, change)
    for template in scenario.client.list(version, "TidalMachineTemplate", scenario.namespace):
        status = _status(scenario, template)
        assert status["capacity"] == {"cpu": "2", "memory": "4Gi"}
        assert status["nodeInfo"] == {"architecture": "amd64"}


def _status(scenario: Scenario, template: JSON) -> JSON:
    version, kind = template["apiVersion"], template["kind"]
    name, namespace = template["metadata"]["name"], scenario.namespace

    def written() -> JSON:
        found: JSON = scenario.client.get(version, kind, name, namespace).get("status", {})
        return found if {"capacity", "nodeInfo"} <= found.keys() else {}

    return eventually(written, what=f"the status of {name}")
