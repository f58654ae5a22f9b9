"""Machine pools of both sorts: scaled up and down, killed, autoscaled, replaced, moved, deleted."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e.fakes.bootstrap import bootstrap_data
from tests.e2e.harness.components import ApiServer
from tests.e2e.harness.kube import JSON
from tests.e2e.harness.management import Base
from tests.e2e.harness.report import Report
from tests.e2e.harness.wait import NotYet, eventually, settled, steadily
from tests.e2e.pool import ELSEWHERE, Pool
from tests.e2e.provider import build_provider
from tests.e2e.scenario import KUBERNETES_NEXT, Scenario, one_scenario, wait_nothing_left
from tests.e2e.stack import Combination, Site, Stack

COMBINATIONS = (
    Combination("v1.13", "v1beta2", "pools", "v1.13-pools"),
    Combination("v1.10", "v1beta1", "pools", "v1.10-pools"),
)
MANY, FEW = 50, 5
_QUIET_SECONDS = 3.0


@dataclass(frozen=True)
class Sort:
    """One of the two sorts of pools: the flavor of the cluster template that has it."""

    word: str
    flavor: str
    machines: bool


WHOLE = Sort("whole", "machinepool", machines=False)
MACHINES = Sort("machines", "machinepool-tidalnodepool", machines=True)
SORTS = pytest.mark.parametrize("sort", [WHOLE, MACHINES], ids=lambda sort: sort.word)


@pytest.fixture(scope="module", params=COMBINATIONS, ids=str)
def pools(
    request: pytest.FixtureRequest, base: Base, workload: ApiServer, report: Report
) -> Iterator[tuple[Stack, Site]]:
    combination: Combination = request.param
    folder = base.folder / str(combination)
    provider = build_provider(combination.example, combination.contract, folder)
    stack = Stack(base, workload, combination, provider, report)
    try:
        yield stack, stack.start()
    finally:
        stack.stop()


@pytest.fixture
def pool_scenario(request: pytest.FixtureRequest, pools: tuple[Stack, Site]) -> Iterator[Scenario]:
    sort: Sort | None = request.node.callspec.params.get("sort")
    name = f"{request.node.originalname}_{sort.word}" if sort else request.node.originalname
    with one_scenario(*pools, name) as made:
        yield made


@SORTS
def test_scale(pool_scenario: Scenario, pools: tuple[Stack, Site], sort: Sort) -> None:
    """Proves: MP-01, MP-03, MP-04, MP-07, MP-08, MP-09, MP-10, MP-12, MP-15, MP-19, SM-09."""
    scenario, (stack, site) = pool_scenario, pools
    pool, word = _created(scenario, sort), sort.word
    with stack.report.phase(stack.name, f"{word}: scale 0 -> {MANY}"):
        _scale(pool, sort, MANY)
    assert len(set(pool.created())) == len(pool.created()) == MANY
    _check_bootstrap_data(pool, sort)
    _check_quiet(pool)
    with stack.report.phase(stack.name, f"{word}: scale {MANY} -> {FEW}"):
        _scale(pool, sort, FEW)
    with stack.report.phase(stack.name, f"{word}: scale {FEW} -> {MANY // 2}, killed meanwhile"):
        pool.scale(MANY // 2)
        delay = random.uniform(0, 1.0)
        print(f"the controllers are killed after {delay:.3f} s")
        time.sleep(delay)
        site.controllers.kill()
        site.controllers.start()
        _wait(pool, sort, MANY // 2)
    made = pool.created()
    assert len(made) == len(set(made)) == MANY + 1 + MANY // 2 - FEW, "something was made twice"
    with stack.report.phase(stack.name, f"{word}: delete the pool"):
        pool_servers = len(scenario.servers()) - 1
        assert pool_servers == MANY // 2
        pool.delete()
        eventually(lambda: len(scenario.servers()) == 1, timeout=10, what="its servers gone")
    assert [machine for machine in scenario.machines() if _is_pooled(machine)] == []
    scenario.delete()
    wait_nothing_left(scenario)


def test_autoscaled_group(pool_scenario: Scenario) -> None:
    """Proves: MP-17."""
    scenario, pool = pool_scenario, _created(pool_scenario, WHOLE)
    report, stack = scenario.stack.report, scenario.stack.name
    _scale(pool, WHOLE, 3)
    pool.note({ELSEWHERE: "an-autoscaler"})
    with report.phase(stack, "whole: an autoscaler elsewhere, 3 -> 6"):
        pool.resize_group(6)
        pool.wait(6)
    pool.note({ELSEWHERE: None})
    _scale(pool, WHOLE, 2)


def test_autoscaled_machines(pool_scenario: Scenario) -> None:
    """Proves: MP-17."""
    pool = _created(pool_scenario, MACHINES)
    _scale(pool, MACHINES, 3)
    pool.note({ELSEWHERE: "an-autoscaler"})
    _settle(pool)
    pool_scenario.client.delete(pool.machines()[0])
    _wait(pool, MACHINES, 2)
    pool.note({ELSEWHERE: "false"})
    _scale(pool, MACHINES, 4)


def test_replacement(pool_scenario: Scenario) -> None:
    """Proves: MP-10, MP-11, IM-21."""
    scenario, pool = pool_scenario, _created(pool_scenario, MACHINES)
    report, stack = scenario.stack.report, scenario.stack.name
    _scale(pool, MACHINES, FEW)
    with report.phase(stack, f"machines: a new spec replaces {FEW} machines"):
        pool.change_infrastructure({"diskGiB": 40})
        _replaced(pool, FEW)
    for machine in pool.machines():
        assert scenario.infrastructure_of(machine)["spec"]["diskGiB"] == 40
    with report.phase(stack, f"machines: a new version replaces {FEW} machines"):
        pool.change({"template": {"spec": {"version": KUBERNETES_NEXT}}})
        _replaced(pool, FEW)
    made = pool.created()
    assert len(made) == len(set(made)) == 3 * FEW


def test_marked_machine_goes_first(pool_scenario: Scenario) -> None:
    """Proves: MP-10."""
    pool = _created(pool_scenario, MACHINES)
    _scale(pool, MACHINES, 4)
    marked = min(pool.machines(), key=lambda machine: str(machine["metadata"]["name"]))
    mark = {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}
    pool_scenario.client.patch(marked, {"metadata": mark})
    _settle(pool)
    _scale(pool, MACHINES, 3)
    assert marked["metadata"]["name"] not in _names(pool)


def test_pause(pool_scenario: Scenario) -> None:
    """Proves: MP-20, SM-01."""
    pool = _created(pool_scenario, MACHINES)
    _scale(pool, MACHINES, 2)
    pool_scenario.pause(True)
    before = pool_scenario.journal()
    pool.scale(4)
    pool_scenario.client.delete(pool.infrastructure())
    steadily(lambda: _untouched(pool_scenario, before), seconds=_QUIET_SECONDS)
    pool_scenario.pause(False)
    eventually(lambda: len(pool_scenario.servers()) == 1, timeout=60, what="the pool is gone")


@SORTS
def test_move(pool_scenario: Scenario, pools: tuple[Stack, Site], sort: Sort) -> None:
    """Proves: MP-20, MV-02, MV-06, MV-08, SM-09."""
    scenario, (stack, _) = pool_scenario, pools
    pool = _created(scenario, sort)
    _scale(pool, sort, 3)
    before, journal = _ids(pool), scenario.journal()
    target = stack.add_site(f"second-{sort.word}")
    stack.clusterctl.move(
        scenario.management.kubeconfig, target.management.kubeconfig, scenario.namespace
    )
    moved = Scenario(stack, target.management, scenario.name, scenario.namespace)
    there = Pool(moved)
    _wait(there, sort, 3)
    assert _ids(there) == before
    steadily(lambda: _untouched(moved, journal), seconds=_QUIET_SECONDS)
    _scale(there, sort, 1)
    moved.delete()
    wait_nothing_left(moved)


def _created(scenario: Scenario, sort: Sort) -> Pool:
    """A cluster with one control plane machine and an empty pool."""
    scenario.create(scenario.render(control_planes=1, workers=0, flavor=sort.flavor))
    scenario.wait_running(1)
    pool = Pool(scenario)
    pool.wait(0)
    return pool


def _scale(pool: Pool, sort: Sort, replicas: int) -> None:
    pool.scale(replicas)
    _wait(pool, sort, replicas)


def _wait(pool: Pool, sort: Sort, replicas: int) -> None:
    pool.wait(replicas)
    pool.wait_machines(replicas if sort.machines else 0)


def _replaced(pool: Pool, replicas: int) -> None:
    """All machines are other ones; meanwhile no more than one was missing."""
    before = _names(pool)

    def others() -> bool:
        found = pool.machines()
        ready = [machine for machine in found if machine.get("status", {}).get("nodeRef")]
        staying = [each for each in ready if "deletionTimestamp" not in each["metadata"]]
        if len(staying) < replicas - 1:
            raise RuntimeError(f"{len(staying)} of {replicas} machines have Nodes")
        if left := _names(pool) & before:
            raise NotYet(f"still there: {left}")
        return True

    eventually(others, timeout=120, what="all machines replaced", interval=0.02)
    _wait(pool, MACHINES, replicas)


def _check_bootstrap_data(pool: Pool, sort: Sort) -> None:
    """Each server has the pool's data; later ones those of their day (MP-19, IM-21)."""
    scenario = pool.scenario
    data = bootstrap_data(scenario.name, pool.name)
    assert {server.user_data for server in pool.servers()} == {data}
    template = pool.machine_pool()["spec"]["template"]["spec"]
    name = template["bootstrap"]["dataSecretName"]
    secret = scenario.client.get("v1", "Secret", name, scenario.namespace)
    scenario.client.patch(secret, {"stringData": {"value": "refreshed"}})
    _scale(pool, sort, MANY + 1)
    assert [server.user_data for server in pool.servers()].count("refreshed") == 1
    scenario.client.patch(secret, {"stringData": {"value": data}})
    _scale(pool, sort, MANY)


def _check_quiet(pool: Pool) -> None:
    def versions() -> dict[str, str]:
        objects = [pool.infrastructure()]
        objects += [pool.scenario.infrastructure_of(machine) for machine in pool.machines()]
        return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in objects}

    settled(versions, seconds=_QUIET_SECONDS, timeout=30, what="the pool's objects")


def _settle(pool: Pool) -> None:
    """Let what was annotated be seen by all."""
    settled(lambda: pool.machine_pool()["metadata"], seconds=1.0, timeout=15, what="the pool")


def _untouched(scenario: Scenario, before: list[object]) -> None:
    assert scenario.journal() == before


def _ids(pool: Pool) -> list[str]:
    return list(pool.machine_pool()["spec"]["providerIDList"])


def _names(pool: Pool) -> set[str]:
    return {machine["metadata"]["name"] for machine in pool.machines()}


def _is_pooled(machine: JSON) -> bool:
    return "cluster.x-k8s.io/pool-name" in machine["metadata"]["labels"]
