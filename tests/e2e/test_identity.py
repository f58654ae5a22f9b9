"""Credentials are lent to namespaces: without leave nothing is made."""

from __future__ import annotations

import pytest

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from tests.e2e.scenario import (
    Scenario,
    condition,
    infrastructure_cluster,
    private_identity,
    wait_nothing_left,
)

_QUIET_SECONDS = 2.0


@pytest.mark.newest
def test_namespace_not_allowed(scenario: Scenario) -> None:
    """Proves: RB-04, SEC-08."""
    report, stack = scenario.stack.report, scenario.stack.name
    secret, identity = private_identity(scenario, ["elsewhere"])
    documents = scenario.render(control_planes=1, workers=1)
    cluster = infrastructure_cluster(scenario, documents)
    cluster["spec"]["identityRef"]["name"] = identity["metadata"]["name"]
    journal = scenario.journal()
    with report.phase(stack, "identity: refused"):
        scenario.create(documents)
        eventually(lambda: _refused(scenario, cluster), what="a clear reason")
        eventually(lambda: _is_provisioning(scenario), what="core waits")
        steadily(lambda: _nothing_made(scenario, len(journal)), seconds=_QUIET_SECONDS)
    with report.phase(stack, "identity: allowed, running"):
        selector = {"matchLabels": {"kubernetes.io/metadata.name": scenario.namespace}}
        allowed = {"list": None, "selector": selector}
        scenario.client.patch(identity, {"spec": {"allowedNamespaces": allowed}})
        scenario.wait_running(2)
    scenario.delete()
    wait_nothing_left(scenario)
    for each in (identity, secret):
        scenario.client.delete(each)


def _refused(scenario: Scenario, cluster: JSON) -> bool:
    metadata = cluster["metadata"]
    found = condition(
        scenario.client.get(
            cluster["apiVersion"], cluster["kind"], metadata["name"], metadata["namespace"]
        ),
        "Ready",
    )
    if found is None or found["status"] != "False":
        raise NotYet(f"Ready: {found}")
    assert found["reason"] == "IdentityNotAllowed"
    return scenario.namespace in found["message"]


def _nothing_made(scenario: Scenario, before: int) -> None:
    assert scenario.journal()[before:] == []
    assert _is_provisioning(scenario)


def _is_provisioning(scenario: Scenario) -> bool:
    return bool(scenario.cluster().get("status", {}).get("phase") == "Provisioning")
