"""Steps with a cluster that uses a ClusterClass."""

from __future__ import annotations

import copy
from typing import Any

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import PATIENCE, NotYet, eventually
from tests.e2e.scenario import Scenario, condition


def wait_reconciled(scenario: Scenario) -> None:
    """Wait until the topology controller has nothing left to do."""

    def reconciled() -> bool:
        found = condition(scenario.cluster(), "TopologyReconciled")
        if found is None or found["status"] != "True":
            raise NotYet(f"TopologyReconciled: {found}")
        return True

    eventually(reconciled, what="the topology reconciled")


def change_templates(scenario: Scenario, documents: list[JSON]) -> None:
    """Give the class new machine templates, because templates must not be changed."""
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


def wait_rolled(scenario: Scenario, old: list[JSON], timeout: float = PATIENCE) -> list[JSON]:
    """Wait until every Machine is replaced and all are running."""
    before = {machine["metadata"]["uid"] for machine in old}

    def rolled() -> bool:
        kept = [each for each in scenario.machines() if each["metadata"]["uid"] in before]
        if kept:
            raise NotYet(f"still there: {[each['metadata']['name'] for each in kept]}")
        return True

    eventually(rolled, timeout=timeout, what="all machines replaced")
    machines = scenario.wait_running(len(old), timeout=timeout)
    wait_reconciled(scenario)
    return machines
