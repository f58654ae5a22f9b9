"""Updates in place: what the author's code covers is changed without replacing machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.extended import ADDED, EXTENDED, images
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_with
from tests.e2e.scenario import Scenario, one_scenario, wait_nothing_left
from tests.e2e.stack import Site, Stack
from tests.e2e.topology import change_templates, wait_reconciled, wait_rolled

_RECORD = "HOOK_RECORD"
_FILE = "hooks.jsonl"
_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
_IN_PROGRESS = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
_Workers = dict[str, tuple[str, str]]
"""Uid and provider id of each, by name."""
_Calls = dict[str, list[str]]
"""Images with which UpdateMachine was called, by Machine."""
# In the place of the scaffold's methods; all else of the scaffold stays.
_AUTHOR = """

import json
import os

_Scaffold = Extension


class Extension(_Scaffold):  # type: ignore[no-redef]
    def can_update_machine_set(self, request: CanUpdateMachineSetRequest) -> InPlace:
        return InPlace(infrastructure=["/spec/template/spec/image"])

    def update_machine(self, request: UpdateMachineRequest) -> Proceed | RetryAfter:
        name = request.desired.machine["metadata"]["name"]
        image = request.desired.infrastructure["spec"]["image"]
        with open(os.environ["HOOK_RECORD"], "r+") as record:
            before = record.read().count(name)
            record.write(json.dumps({"machine": name, "image": image}) + "\\n")
        return RetryAfter(1, "the image is being written") if before < 2 else Proceed()
"""


@pytest.fixture(scope="module")
def updatable(base: Base, workload: ApiServer, report: Report) -> Iterator[tuple[Stack, Site]]:
    newest = EXTENDED[0]
    combination = replace(newest, name=f"{newest.series}-in-place")
    folder: Path = base.folder / str(combination)
    provider = build_with(combination.example, combination.contract, folder, ADDED)
    author = provider.repository / "src" / provider.package / "extension.py"
    author.write_text(author.read_text() + _AUTHOR)
    record = folder / _FILE
    record.touch()
    stack = Stack(base, workload, combination, provider, report, {_RECORD: str(record)})
    try:
        yield stack, stack.start()
    finally:
        stack.stop()


@pytest.fixture
def updatable_scenario(
    request: pytest.FixtureRequest, updatable: tuple[Stack, Site]
) -> Iterator[Scenario]:
    with one_scenario(*updatable, request.node.originalname) as made:
        yield made


def test_updates_in_place(updatable_scenario: Scenario) -> None:
    """Proves: RX-05, RX-06, IM-24."""
    scenario = updatable_scenario
    report, stack = scenario.stack.report, scenario.stack.name
    documents = scenario.render(1, 2, flavor=scenario.stack.provider.topology_flavor)
    _without_surge(documents)
    scenario.create(documents)
    scenario.wait_running(3)
    wait_reconciled(scenario)
    before = _workers(scenario)
    with report.phase(stack, "in place: another image for the workers"):
        change_templates(scenario, documents)
        eventually(lambda: _all_updated(scenario), what="all machines updated")
        machines = scenario.wait_running(3)
        wait_reconciled(scenario)
    calls = _check_updated(before, _workers(scenario), _calls(scenario))
    with report.phase(stack, "in place: changes that no extension covers replace machines"):
        _set_variable(scenario, "memoryMiB", 1024)
        wait_rolled(scenario, machines)
    assert _calls(scenario) == calls
    scenario.delete()
    scenario.delete_classes()
    wait_nothing_left(scenario)


def _check_updated(before: _Workers, after: _Workers, calls: _Calls) -> _Calls:
    """Check that updates in place kept the Machines and their servers; return the calls.

    Core, not the provider, decides which Machine is updated in place.  Its MachineDeployment
    controller lists the Machines before the MachineSets: a Machine that moves between the two
    lists counts as missing, and core creates another one in its place.
    """
    kept = before.keys() & after.keys()
    assert kept, f"every machine was replaced: {before}, {after}"
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert kept <= calls.keys() <= before.keys()
    for name, called_with in calls.items():
        assert set(called_with) == {"debian-14"}
        # Core may ask once more before its cache shows what it has written itself.
        assert name not in kept or len(called_with) >= 3, "core asks until it is done"
    return calls


def _without_surge(documents: list[JSON]) -> None:
    """Otherwise core begins a rollout with one machine more, and that is a new one."""
    (cluster,) = (each for each in documents if each["kind"] == "Cluster")
    (workers,) = cluster["spec"]["topology"]["workers"]["machineDeployments"]
    one_by_one = {"maxSurge": 0, "maxUnavailable": 1}
    strategy = {"type": "RollingUpdate", "rollingUpdate": one_by_one}
    workers["rollout"] = {"strategy": strategy}


def _workers(scenario: Scenario) -> _Workers:
    """Uid and provider id of the workers, by name."""
    return {
        machine["metadata"]["name"]: (machine["metadata"]["uid"], machine["spec"]["providerID"])
        for machine in scenario.machines()
        if _CONTROL_PLANE not in machine["metadata"]["labels"]
    }


def _all_updated(scenario: Scenario) -> bool:
    for machine in scenario.machines():
        if _IN_PROGRESS in machine["metadata"].get("annotations", {}):
            raise NotYet(f"in progress: {machine['metadata']['name']}")
    found = images(scenario)
    if list(found.values()) != ["debian-14"] * 3:
        raise NotYet(f"images: {found}")
    return True


def _calls(scenario: Scenario) -> _Calls:
    """Images with which UpdateMachine was called, by machine."""
    found: _Calls = {}
    record = scenario.stack.folder / _FILE
    for line in record.read_text().splitlines():
        call: JSON = json.loads(line)
        found.setdefault(call["machine"], []).append(call["image"])
    return found


def _set_variable(scenario: Scenario, name: str, value: int) -> None:
    cluster = scenario.cluster()
    variables = cluster["spec"]["topology"]["variables"]
    others = [each for each in variables if each["name"] != name]
    changed = [*others, {"name": name, "value": value}]
    scenario.client.patch(cluster, {"spec": {"topology": {"variables": changed}}})
