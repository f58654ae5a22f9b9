"""A cluster from a ClusterClass: created, rolled by a template change, upgraded, deleted."""

from __future__ import annotations

import copy
from typing import Any

from tests.e2e.harness.kube import JSON
from tests.e2e.harness.wait import NotYet, eventually, settled
from tests.e2e.scenario import (
    KUBERNETES_NEXT,
    RUNNING_SECONDS,
    Scenario,
    condition,
    wait_nothing_left,
)

_QUIET_SECONDS = 3.0


def test_clusterclass(scenario: Scenario) -> None:
    """Proves: CC-70, CC-73, IC-14, IM-12, IM-14, RB-05, TP-07."""
    report, stack = scenario.stack.report, scenario.stack.name
    documents = scenario.render(1, 2, flavor=scenario.stack.provider.topology_flavor)
    with report.phase(stack, "topology: create"):
        scenario.create(documents)
        machines = scenario.wait_running(3)
        _wait_reconciled(scenario)
    _check_no_fight(scenario, machines)
    with report.phase(stack, "topology: template change rolls all machines"):
        _change_templates(scenario, documents)
        machines = _wait_rolled(scenario, machines)
        _check_change_arrived(scenario, machines)
    with report.phase(stack, "topology: Kubernetes version upgrade"):
        topology = {"topology": {"version": KUBERNETES_NEXT}}
        scenario.client.patch(scenario.cluster(), {"spec": topology})
        machines = _wait_rolled(scenario, machines)
        assert {machine["spec"]["version"] for machine in machines} == {KUBERNETES_NEXT}
    with report.phase(stack, "topology: delete"):
        scenario.delete()
        for found in scenario.client.list(scenario.core, "ClusterClass", scenario.namespace):
            scenario.client.delete(found)
        wait_nothing_left(scenario)


def _wait_reconciled(scenario: Scenario) -> None:
    def reconciled() -> bool:
        found = condition(scenario.cluster(), "TopologyReconciled")
        if found is None or found["status"] != "True":
            raise NotYet(f"TopologyReconciled: {found}")
        return True

    eventually(reconciled, timeout=30, what="the topology reconciled")


def _check_no_fight(scenario: Scenario, machines: list[JSON]) -> None:
    """Core's server-side apply and the provider's own writes must come to rest."""

    def generations() -> dict[str, int]:
        objects = [scenario.infrastructure_of(machine) for machine in machines]
        objects.append(scenario.cluster())
        return {each["metadata"]["name"]: each["metadata"]["generation"] for each in objects}

    settled(generations, seconds=_QUIET_SECONDS, timeout=15, what="generations")


def _change_templates(scenario: Scenario, documents: list[JSON]) -> None:
    """Give the class new machine templates: templates themselves must not be changed."""
    (cluster_class,) = (each for each in documents if each["kind"] == "ClusterClass")
    change = scenario.stack.provider.machine_change
    names = {}
    for document in documents:
        if _is_machine_template(document, scenario):
            new = copy.deepcopy(document)
            new["metadata"]["name"] = f"{document['metadata']['name']}-new"
            new["spec"]["template"]["spec"] |= change
            scenario.client.apply(new)
            names[document["kind"], document["metadata"]["name"]] = new["metadata"]["name"]
    assert names, "the class uses no machine template of the provider"
    scenario.client.apply(_renamed(cluster_class, names))


def _is_machine_template(document: JSON, scenario: Scenario) -> bool:
    group = document["apiVersion"].partition("/")[0]
    own = group in scenario.stack.provider.groups
    return own and document["kind"].endswith("MachineTemplate")


def _renamed(value: Any, names: dict[tuple[str, str], str]) -> Any:
    """The same tree with references to the old templates turned to the new ones."""
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _renamed(item, names) for key, item in value.items()}
    new = names.get((found.get("kind", ""), found.get("name", "")))
    return {**found, "name": new} if new else found


def _wait_rolled(scenario: Scenario, old: list[JSON]) -> list[JSON]:
    """Every Machine replaced by a new one, all running."""
    before = {machine["metadata"]["uid"] for machine in old}

    def rolled() -> bool:
        kept = [each for each in scenario.machines() if each["metadata"]["uid"] in before]
        if kept:
            raise NotYet(f"still there: {[each['metadata']['name'] for each in kept]}")
        return True

    eventually(rolled, timeout=RUNNING_SECONDS, what="all machines replaced")
    machines = scenario.wait_running(len(old))
    _wait_reconciled(scenario)
    return machines


def _check_change_arrived(scenario: Scenario, machines: list[JSON]) -> None:
    for machine in machines:
        spec = scenario.infrastructure_of(machine)["spec"]
        for name, value in scenario.stack.provider.machine_change.items():
            assert spec[name] == value
