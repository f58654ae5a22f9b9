"""A cluster from a ClusterClass: created, rolled by a template change, upgraded, deleted."""

from __future__ import annotations

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import settled
from capsmith.contract.model import AuditedTest
from tests.e2e.access import check_shown
from tests.e2e.releases import KUBERNETES_NEXT
from tests.e2e.scenario import Scenario, wait_nothing_left
from tests.e2e.topology import change_templates, wait_reconciled, wait_rolled

_QUIET_SECONDS = 3.0


def test_clusterclass(scenario: Scenario) -> None:
    """Proves: CC-70, CC-73, IC-14, IM-12, IM-14, RB-05, TP-07."""
    report, stack = scenario.stack.report, scenario.stack.name
    documents = scenario.render(1, 2, flavor=scenario.stack.provider.topology_flavor)
    with report.phase(stack, "topology: create"):
        scenario.create(documents)
        machines = scenario.wait_running(3)
        wait_reconciled(scenario)
    _check_no_fight(scenario, machines)
    _check_metadata_is_core_s(scenario)
    with report.phase(stack, "topology: template change rolls all machines"):
        change_templates(scenario, documents)
        machines = wait_rolled(scenario, machines)
        _check_change_arrived(scenario, machines)
    with report.phase(stack, "topology: Kubernetes version upgrade"):
        topology = {"topology": {"version": KUBERNETES_NEXT}}
        scenario.client.patch(scenario.cluster(), {"spec": topology})
        machines = wait_rolled(scenario, machines)
        assert {machine["spec"]["version"] for machine in machines} == {KUBERNETES_NEXT}
    with report.phase(stack, "topology: delete"):
        _check_metadata_is_core_s(scenario)
        scenario.delete()
        scenario.delete_classes()
        wait_nothing_left(scenario)
    check_shown(scenario.stack.provider, scenario.management, AuditedTest.TOPOLOGY)


def _check_no_fight(scenario: Scenario, machines: list[JSON]) -> None:
    """Core's server-side apply and the provider's own writes must come to rest."""

    def generations() -> dict[str, int]:
        objects = [scenario.infrastructure_of(machine) for machine in machines]
        objects.append(scenario.cluster())
        return {each["metadata"]["name"]: each["metadata"]["generation"] for each in objects}

    settled(generations, seconds=_QUIET_SECONDS, what="generations")


def _check_metadata_is_core_s(scenario: Scenario) -> None:
    """The infrastructure cluster has no labels and annotations but core's.

    Cluster API's own tests expect that.  What the manager has recorded is its own: the topology
    controller owns no part of it.
    """
    cluster = scenario.cluster()
    infrastructure = scenario.infrastructure_of(cluster)
    metadata = infrastructure["metadata"]
    assert metadata["labels"] == {
        "cluster.x-k8s.io/cluster-name": cluster["metadata"]["name"],
        "topology.cluster.x-k8s.io/owned": "",
    }
    assert metadata["annotations"].keys() == {
        "cluster.x-k8s.io/cloned-from-groupkind",
        "cluster.x-k8s.io/cloned-from-name",
    }
    assert infrastructure["spec"]["recorded"]["externalID"]
    owners = {
        entry["manager"]
        for entry in metadata["managedFields"]
        if "f:recorded" in entry.get("fieldsV1", {}).get("f:spec", {})
    }
    assert len(owners) == 1
    assert "capi-topology" not in owners


def _check_change_arrived(scenario: Scenario, machines: list[JSON]) -> None:
    for machine in machines:
        spec = scenario.infrastructure_of(machine)["spec"]
        for name, value in scenario.stack.provider.machine_change.items():
            assert spec[name] == value
