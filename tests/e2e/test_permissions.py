"""What is refused: changes of templates, and core without the provider's aggregated role."""

from __future__ import annotations

import copy

from capsmith.clusters.processes.cluster import ManagementCluster
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import eventually, steadily
from tests.e2e.scenario import Scenario, denied

_CORE_GROUPS = {"infrastructure.cluster.x-k8s.io"}
_AGGREGATE = "cluster.x-k8s.io/aggregate-to-manager"


def test_template_immutable(scenario: Scenario) -> None:
    """A user's patch is denied by the policy; metadata stays free.

    Proves: IM-13.
    """
    template = _machine_template(scenario)
    scenario.client.apply(template)
    spec = {"spec": {"template": {"spec": scenario.stack.provider.machine_change}}}
    message = denied(scenario.client, template, spec)
    assert "spec.template.spec" in message, message
    scenario.client.patch(template, {"metadata": {"labels": {"mine": "yes"}}})
    scenario.client.delete(template)


def test_core_needs_aggregated_role(scenario: Scenario) -> None:
    """Only the aggregated role lets core in, but in the groups that core has a role for itself.

    Proves: RB-01.
    """
    client, management = scenario.client, scenario.management
    crd = scenario.stack.provider.crds[0]["spec"]
    group, plural = crd["group"], crd["names"]["plural"]
    role = next(each for each in _aggregated(scenario) if _grants(each, group))
    assert management.core_may("create", group, plural)
    client.patch(role, {"metadata": {"labels": {_AGGREGATE: None}}})
    try:
        if group in _CORE_GROUPS:
            steadily(lambda: _check_permitted(management, group, plural), seconds=2)
        else:
            eventually(lambda: not management.core_may("create", group, plural), what="a refusal")
    finally:
        client.patch(role, {"metadata": {"labels": {_AGGREGATE: "true"}}})
        management.wait_core_permitted()


def _check_permitted(management: ManagementCluster, group: str, plural: str) -> None:
    assert management.core_may("create", group, plural), "core lost a right of its own"


def _machine_template(scenario: Scenario) -> JSON:
    found = next(
        document
        for document in scenario.render(1, 1)
        if document["kind"].endswith("MachineTemplate")
    )
    return copy.deepcopy(found)


def _aggregated(scenario: Scenario) -> list[JSON]:
    api = "rbac.authorization.k8s.io/v1"
    return scenario.client.list(api, "ClusterRole", labels={_AGGREGATE: "true"})


def _grants(role: JSON, group: str) -> bool:
    return any(group in rule["apiGroups"] for rule in role["rules"])
