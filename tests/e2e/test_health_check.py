"""Health checks of core that look at the condition of the infrastructure."""

from __future__ import annotations

import pytest

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from tests.e2e.scenario import Scenario, condition, infrastructure_check, wait_nothing_left
from tests.e2e.stack import Stack

_QUIET_SECONDS = 3.0
"""Longer than the time limit of the health check."""


@pytest.mark.newest
def test_an_outage_replaces_no_machine(scenario: Scenario, stack: Stack) -> None:
    """Neither failed calls nor wrong credentials say that machines do not work.

    Proves: IM-03.
    """
    report, name = stack.report, stack.name
    scenario.create(scenario.render(control_planes=1, workers=2))
    machines = _uids(scenario.wait_running(3))
    journal = scenario.journal()
    labels = {"cluster.x-k8s.io/cluster-name": scenario.name}
    scenario.client.apply(infrastructure_check(scenario, labels))
    for faults in ("error=1", "refuse=1"):
        with report.phase(name, f"health check: {faults}"), stack.cloud.outage(faults):
            _touch(scenario)
            eventually(lambda: _are_all(scenario, "Unknown"), what="nothing is known")
            eventually(lambda: _is_healthy(scenario, 3), what="the health check has seen it")
            steadily(lambda: _check(scenario, machines), seconds=_QUIET_SECONDS)
        _touch(scenario)
        eventually(lambda: _are_all(scenario, "True"), what="all machines are ready again")
    _check(scenario, machines)
    assert scenario.journal() == journal
    scenario.delete()
    wait_nothing_left(scenario)


def _uids(machines: list[JSON]) -> set[str]:
    return {str(machine["metadata"]["uid"]) for machine in machines}


def _check(scenario: Scenario, machines: set[str]) -> None:
    found = scenario.machines()
    assert _uids(found) == machines
    assert not any("deletionTimestamp" in each["metadata"] for each in found)


def _are_all(scenario: Scenario, status: str) -> bool:
    found = [condition(each, "InfrastructureReady") for each in scenario.machines()]
    if any(each is None or each["status"] != status for each in found):
        raise NotYet(f"InfrastructureReady: {found}")
    return True


def _is_healthy(scenario: Scenario, machines: int) -> bool:
    check = scenario.client.get(
        scenario.core, "MachineHealthCheck", scenario.name, scenario.namespace
    )
    status = check.get("status", {})
    if (status.get("expectedMachines"), status.get("currentHealthy")) != (machines, machines):
        raise NotYet(f"MachineHealthCheck: {status}")
    return True


def _touch(scenario: Scenario) -> None:
    """Let the manager reconcile all infrastructure machines."""
    for machine in scenario.machines():
        infrastructure = scenario.infrastructure_of(machine)
        count = int(infrastructure["metadata"].get("annotations", {}).get("example.com/touched", 0))
        annotations = {"example.com/touched": str(count + 1)}
        scenario.client.patch(infrastructure, {"metadata": {"annotations": annotations}})
