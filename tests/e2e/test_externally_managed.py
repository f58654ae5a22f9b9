"""An infrastructure cluster that something else takes care of (IC-15, IC-16)."""

from __future__ import annotations

import pytest

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import eventually, steadily
from tests.e2e.scenario import Scenario, denied, infrastructure_cluster, wait_nothing_left
from tests.e2e.stack import Site

_MANAGED_BY = "cluster.x-k8s.io/managed-by"
_QUIET_SECONDS = 2.0


@pytest.mark.newest
def test_externally_managed(scenario: Scenario, site: Site) -> None:
    """Proves: IC-15, IC-16."""
    documents = scenario.render(control_planes=1, workers=1)
    cluster = infrastructure_cluster(scenario, documents)
    cluster["metadata"]["annotations"] = {_MANAGED_BY: "the-tests"}
    with scenario.stack.report.phase(scenario.stack.name, "externally managed: running"):
        scenario.create(documents)
        eventually(
            lambda: _current(scenario, cluster)["metadata"].get("ownerReferences"),
            what="the owner that core sets",
        )
        site.wait_leading()
        steadily(lambda: _check_left_alone(scenario, cluster), seconds=_QUIET_SECONDS)
        _provide(scenario, cluster)
        machines = scenario.wait_running(2)
    _check_left_alone(scenario, cluster)
    # The sign by which writes of the controllers are known is there where they do write.
    for machine in machines:
        assert _wrote(scenario, scenario.infrastructure_of(machine))
    assert scenario.stack.cloud.clusters() == []
    removal = {"metadata": {"annotations": {_MANAGED_BY: None}}}
    message = denied(scenario.client, cluster, removal)
    assert _MANAGED_BY in message, message
    scenario.delete()
    wait_nothing_left(scenario)


def _provide(scenario: Scenario, cluster: JSON) -> None:
    """What the external system does."""
    endpoint = {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}}
    scenario.client.patch(cluster, {"spec": endpoint})
    old = scenario.stack.provider.contract == "v1beta1"
    status = {"ready": True} if old else {"initialization": {"provisioned": True}}
    scenario.client.patch(cluster, {"status": status}, "status")


def _check_left_alone(scenario: Scenario, cluster: JSON) -> None:
    current = _current(scenario, cluster)
    assert not _wrote(scenario, current)
    assert "finalizers" not in current["metadata"]


def _wrote(scenario: Scenario, obj: JSON) -> bool:
    managers = {each["manager"] for each in obj["metadata"]["managedFields"]}
    return scenario.stack.provider.label in managers


def _current(scenario: Scenario, cluster: JSON) -> JSON:
    metadata = cluster["metadata"]
    return scenario.client.get(
        cluster["apiVersion"], cluster["kind"], metadata["name"], metadata["namespace"]
    )
