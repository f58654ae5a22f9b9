"""Zones: offered by the infrastructure, chosen by core and its providers, and reported back."""

from __future__ import annotations

from typing import Any

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import eventually
from tests.e2e.fakes.dialect import CONTROL_PLANE
from tests.e2e.scenario import Scenario, wait_nothing_left

_ZONES = ("zone-1", "zone-2")
"""What the simulated cloud offers."""


def test_failure_domains(scenario: Scenario) -> None:
    """Proves: IC-08, IC-09, IM-05, IM-06, IM-07."""
    report, stack = scenario.stack.report, scenario.stack.name
    documents = scenario.render(control_planes=3, workers=2)
    (deployment,) = (each for each in documents if each["kind"] == "MachineDeployment")
    deployment["spec"]["template"]["spec"]["failureDomain"] = _ZONES[1]
    with report.phase(stack, "zones: create 3 control planes, 2 workers"):
        scenario.create(documents)
        machines = scenario.wait_running(5)
    eventually(lambda: _all_placed(scenario), what="zones as they are wanted")
    assert sorted(_zones(machines, control_plane=True)) in (
        ["zone-1", "zone-1", "zone-2"],
        ["zone-1", "zone-2", "zone-2"],
    )
    assert _zones(machines, control_plane=False) == ["zone-2", "zone-2"]
    with report.phase(stack, "zones: delete"):
        scenario.delete()
        wait_nothing_left(scenario)


def _as_core_says(scenario: Scenario) -> Any:
    if scenario.stack.dialect.contract == "v1beta1":
        return {zone: {"controlPlane": True} for zone in _ZONES}
    return [{"name": zone, "controlPlane": True} for zone in _ZONES]


def _all_placed(scenario: Scenario) -> bool:
    assert scenario.cluster()["status"]["failureDomains"] == _as_core_says(scenario)
    for machine in scenario.machines():
        _check_placed(scenario, machine)
    return True


def _check_placed(scenario: Scenario, machine: JSON) -> None:
    """IM-06, IM-05: where the Machine is wanted is where its infrastructure says to be."""
    wanted = machine["spec"]["failureDomain"]
    infrastructure = scenario.infrastructure_of(machine)
    if scenario.stack.provider.contract == "v1beta1":
        assert infrastructure["spec"].get("failureDomain") == wanted
        return
    assert infrastructure["status"].get("failureDomain") == wanted
    assert machine["status"].get("failureDomain") == wanted


def _zones(machines: list[JSON], *, control_plane: bool) -> list[str]:
    return [
        machine["spec"]["failureDomain"]
        for machine in machines
        if (CONTROL_PLANE in machine["metadata"]["labels"]) is control_plane
    ]
