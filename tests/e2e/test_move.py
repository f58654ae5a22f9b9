"""`clusterctl move` in an outage: another management cluster, the same infrastructure."""

from __future__ import annotations

import pytest

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import steadily
from tests.e2e.harness.cloud import Event
from tests.e2e.scenario import Scenario, wait_moved_away, wait_nothing_left
from tests.e2e.stack import Site, Stack

_QUIET_SECONDS = 2.0


@pytest.mark.newest
def test_move(scenario: Scenario, stack: Stack, site: Site) -> None:
    """The tenant's cloud is down all the while: calls hang at the source, and then at the target.

    Proves: MV-02, MV-03, MV-06, MV-08, SM-09, ST-11.
    """
    report, name = stack.report, stack.name
    target = stack.add_site("second")
    scenario.create(scenario.render(control_planes=1, workers=2))
    machines = scenario.wait_running(3)
    nodes = _nodes(scenario, machines)
    journal = scenario.journal()
    with stack.cloud.outage():
        _touch(scenario, machines)
        site.controllers.wait_calling(len(machines))
        with report.phase(name, "clusterctl move"):
            stack.clusterctl.move(
                scenario.management.kubeconfig, target.management.kubeconfig, scenario.namespace
            )
        wait_moved_away(scenario)
        scenario.management = target.management
        target.controllers.wait_calling(1)
    with report.phase(name, "move: running again at the target"):
        machines = scenario.wait_running(3)
    assert _nodes(scenario, machines) == nodes, "Nodes were replaced"
    _check_untouched(scenario, journal)
    with report.phase(name, "move: scale workers 2 -> 3 at the target"):
        scenario.scale_workers(3)
        scenario.wait_running(4)
    assert len(scenario.journal()) == len(journal) + 1
    with report.phase(name, "move: delete at the target"):
        scenario.delete()
        wait_nothing_left(scenario)


def _touch(scenario: Scenario, machines: list[JSON]) -> None:
    """Let the manager reconcile all infrastructure machines."""
    for machine in machines:
        annotations = {"homelab.example.com/touched": "true"}
        scenario.client.patch(
            scenario.infrastructure_of(machine), {"metadata": {"annotations": annotations}}
        )


def _nodes(scenario: Scenario, machines: list[JSON]) -> dict[str, str]:
    """Uid by name."""
    names = [machine["status"]["nodeRef"]["name"] for machine in machines]
    client = scenario.stack.workload.client
    return {name: client.get("v1", "Node", name)["metadata"]["uid"] for name in names}


def _check_untouched(scenario: Scenario, journal: list[Event]) -> None:
    def unchanged() -> None:
        assert scenario.journal() == journal

    steadily(unchanged, seconds=_QUIET_SECONDS)
