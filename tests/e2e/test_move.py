"""`clusterctl move`: the cluster changes its management cluster, the infrastructure stays."""

from __future__ import annotations

from tests.e2e.harness.cloud import Event
from tests.e2e.harness.kube import JSON
from tests.e2e.harness.wait import steadily
from tests.e2e.scenario import Scenario, provider_objects, wait_nothing_left
from tests.e2e.stack import Stack

_QUIET_SECONDS = 2.0


def test_move(scenario: Scenario, stack: Stack) -> None:
    """Proves: MV-02, MV-03, MV-06, MV-08, SM-09, ST-11."""
    report, name = stack.report, stack.name
    target = stack.add_site("second")
    scenario.create(scenario.render(control_planes=1, workers=2))
    machines = scenario.wait_running(3)
    nodes = _nodes(scenario, machines)
    journal = scenario.journal()
    with report.phase(name, "clusterctl move"):
        stack.clusterctl.move(
            scenario.management.kubeconfig, target.management.kubeconfig, scenario.namespace
        )
    assert (
        provider_objects(scenario.client, stack.provider.namespaced_crds) == []
    ), "left at the source"
    moved = Scenario(stack, target.management, scenario.name, scenario.namespace)
    with report.phase(name, "move: running again at the target"):
        machines = moved.wait_running(3)
    assert _nodes(moved, machines) == nodes, "Nodes were replaced"
    _check_untouched(moved, journal)
    with report.phase(name, "move: scale workers 2 -> 3 at the target"):
        moved.scale_workers(3)
        moved.wait_running(4)
    assert len(moved.journal()) == len(journal) + 1
    with report.phase(name, "move: delete at the target"):
        moved.delete()
        wait_nothing_left(moved)


def _nodes(scenario: Scenario, machines: list[JSON]) -> dict[str, str]:
    """Uid by name."""
    names = [machine["status"]["nodeRef"]["name"] for machine in machines]
    client = scenario.stack.workload.client
    return {name: client.get("v1", "Node", name)["metadata"]["uid"] for name in names}


def _check_untouched(scenario: Scenario, journal: list[Event]) -> None:
    def unchanged() -> None:
        assert scenario.journal() == journal

    steadily(unchanged, seconds=_QUIET_SECONDS)
