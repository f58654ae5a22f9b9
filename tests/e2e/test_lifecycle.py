"""One plain cluster through its whole life."""

from __future__ import annotations

import random
import time

import pytest

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually, settled, steadily
from capsmith.contract.model import AuditedTest
from tests.e2e.access import check_shown
from tests.e2e.fakes.bootstrap import bootstrap_data
from tests.e2e.fakes.manifests import BOOTSTRAP_API, CONTROL_PLANE_API
from tests.e2e.harness.cloud import Event
from tests.e2e.scenario import Scenario, wait_nothing_left
from tests.e2e.stack import Site

_QUIET_SECONDS = 3.0


@pytest.mark.life
def test_lifecycle(scenario: Scenario, site: Site) -> None:
    """From the first Machine to the last.

    Proves: IC-02, IC-03, IM-01, IM-02, IM-12, RB-01, RB-03, SM-01, SM-04, SM-05, SM-09, ST-08.
    """
    report, stack = scenario.stack.report, scenario.stack.name
    with report.phase(stack, "create: 1 control plane, 2 workers"):
        scenario.create(scenario.render(control_planes=1, workers=2))
        machines = scenario.wait_running(3)
    _check_bootstrap_data(scenario)
    _check_endpoint(scenario)
    with report.phase(stack, "scale workers 2 -> 4"):
        scenario.scale_workers(4)
        machines = scenario.wait_running(5)
    _check_quiet(scenario, machines)
    with report.phase(stack, "scale workers 4 -> 1"):
        scenario.scale_workers(1)
        scenario.wait_running(2)
    with report.phase(stack, "pause, delete a machine, unpause"):
        site.wait_leading()
        _pause_protects(scenario)
    with report.phase(stack, "scale 1 -> 4 with a crash of the controllers"):
        _crash_while_scaling(scenario, site)
    with report.phase(stack, "delete"):
        scenario.delete()
        wait_nothing_left(scenario)
    check_shown(scenario.stack.provider, scenario.management, AuditedTest.LIFECYCLE)


@pytest.mark.newest
def test_same_name_again(scenario: Scenario) -> None:
    """What is remembered of a cluster must not outlive it."""
    with scenario.stack.report.phase(scenario.stack.name, "the same name twice"):
        first = _create_and_delete(scenario)
        second = _create_and_delete(scenario)
    assert not first & second, "two clusters shared machines"


def _create_and_delete(scenario: Scenario) -> set[str]:
    scenario.create(scenario.render(control_planes=1, workers=1))
    machines = scenario.wait_running(2)
    scenario.delete()
    wait_nothing_left(scenario)
    # Objects of the helpers' kinds go last: the next cluster would take them for its own.
    eventually(lambda: not _helpers(scenario), what="nothing left of the helpers")
    return {machine["metadata"]["uid"] for machine in machines}


def _helpers(scenario: Scenario) -> list[str]:
    kinds = [(BOOTSTRAP_API, kind) for kind in ("FakeConfig", "FakeConfigTemplate")]
    kinds += [(CONTROL_PLANE_API, kind) for kind in ("FakeControlPlane",)]
    return [
        f"{kind} {each['metadata']['name']}"
        for version, kind in kinds
        for each in scenario.client.list(version, kind, scenario.namespace)
    ]


def _check_bootstrap_data(scenario: Scenario) -> None:
    for server in scenario.servers():
        assert server.user_data == bootstrap_data(scenario.name, server.name)


def _check_endpoint(scenario: Scenario) -> None:
    endpoint = scenario.cluster()["spec"]["controlPlaneEndpoint"]
    assert endpoint["host"]
    assert endpoint["port"]


def _check_quiet(scenario: Scenario, machines: list[JSON]) -> None:
    """A settled object is not written again."""
    settled(
        lambda: _versions(scenario, machines),
        seconds=_QUIET_SECONDS,
        what="infrastructure objects",
    )


def _versions(scenario: Scenario, machines: list[JSON]) -> dict[str, str]:
    objects = (scenario.infrastructure_of(machine)["metadata"] for machine in machines)
    return {metadata["name"]: metadata["resourceVersion"] for metadata in objects}


def _pause_protects(scenario: Scenario) -> None:
    worker = next(
        machine
        for machine in scenario.machines()
        if "cluster.x-k8s.io/control-plane" not in machine["metadata"]["labels"]
    )
    infrastructure = scenario.infrastructure_of(worker)
    scenario.pause()
    before = scenario.journal()
    scenario.client.delete(worker)
    scenario.client.delete(infrastructure)
    steadily(lambda: _untouched(scenario, before), seconds=_QUIET_SECONDS)
    scenario.resume()
    eventually(lambda: _replaced(scenario, worker), what="the deleted machine replaced")
    scenario.wait_running(2)


def _untouched(scenario: Scenario, before: list[Event]) -> None:
    assert scenario.journal() == before


def _replaced(scenario: Scenario, machine: JSON) -> bool:
    names = [each["metadata"]["name"] for each in scenario.machines()]
    if machine["metadata"]["name"] in names:
        raise NotYet(f"machines: {names}")
    return True


def _crash_while_scaling(scenario: Scenario, site: Site) -> None:
    """Whatever the controllers were doing when they died, no server is made twice."""
    before = len(scenario.journal())
    scenario.scale_workers(4)
    delay = random.uniform(0, 1.0)
    print(f"the controllers are killed after {delay:.3f} s")
    time.sleep(delay)
    site.controllers.kill()
    site.controllers.start()
    scenario.wait_running(5)
    created = [each.id for each in scenario.journal()[before:] if each.action == "create"]
    assert len(created) == len(set(created)) == 3, created
