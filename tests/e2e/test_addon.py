"""An add-on on a real workload API server: selected, moved, unselected, deleted."""

from __future__ import annotations

import json

import pytest

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from tests.e2e.extended import addon, addon_kind
from tests.e2e.scenario import Scenario, wait_nothing_left
from tests.e2e.stack import Site, Stack

_SELECTOR: JSON = {"matchLabels": {"lamp": "wanted"}}
_QUIET_SECONDS = 3.0

Extended = tuple[Stack, Site]


def test_addon(extended: Extended, extended_scenario: Scenario) -> None:
    """Proves: AD-02, AD-03, SEC-01, SM-08."""
    scenario, (_, site) = extended_scenario, extended
    report, stack = scenario.stack.report, scenario.stack.name
    lamp = scenario.client.create(addon(scenario, "lamp", _SELECTOR))
    documents = scenario.render(control_planes=1, workers=1)
    _cluster_of(documents)["metadata"]["labels"] = dict(_SELECTOR["matchLabels"])
    with report.phase(stack, "addon: on a cluster as soon as that can be reached"):
        scenario.create(documents)
        scenario.wait_running(2)
        _wait_installed(scenario, "hello")
    _wait_status(scenario, lamp, {scenario.name: "Ready"})
    with report.phase(stack, "addon: another spec, with a crash of the manager"):
        site.managers["addon"].kill()
        scenario.client.patch(lamp, {"spec": {"message": "goodbye"}})
        site.managers["addon"].start()
        _wait_installed(scenario, "goodbye")
    with report.phase(stack, "addon: unselected, it is taken away"):
        _label(scenario, None)
        _wait_gone(scenario)
        _wait_status(scenario, lamp, {})
    with report.phase(stack, "addon: selected again, and deleted"):
        _label(scenario, "wanted")
        _wait_installed(scenario, "goodbye")
        scenario.client.delete(lamp)
        _wait_deleted(scenario, lamp)
    _wait_gone(scenario)
    scenario.delete()
    wait_nothing_left(scenario)


def test_addon_of_a_paused_cluster(extended: Extended, extended_scenario: Scenario) -> None:
    """Proves: AD-03, SM-01."""
    scenario, (_, site) = extended_scenario, extended
    lamp = _running_with_addon(scenario)
    site.managers["addon"].wait_leading()
    scenario.pause()
    _label(scenario, None)
    scenario.client.delete(lamp)
    steadily(lambda: _installed(scenario), seconds=_QUIET_SECONDS)
    scenario.resume()
    _wait_deleted(scenario, lamp)
    _wait_gone(scenario)
    scenario.delete()
    wait_nothing_left(scenario)


def test_addon_outlives_its_cluster(extended: Extended, extended_scenario: Scenario) -> None:
    """Proves: AD-03, SM-04."""
    scenario = extended_scenario
    lamp = _running_with_addon(scenario)
    scenario.delete()
    _wait_status(scenario, lamp, {})
    assert "deletionTimestamp" not in _now(scenario, lamp)["metadata"]
    # All clusters of these tests are one API server: what was on the deleted one is still there.
    _installed(scenario)
    scenario.stack.workload.client.delete(_config_map(scenario) or {})
    scenario.client.delete(lamp)
    _wait_deleted(scenario, lamp)
    wait_nothing_left(scenario)


# test_whole_cluster.py moves clusters; tests/runtime/scenarios/addon moves what an add-on installs.
@pytest.mark.exhaustive
def test_addon_moves(extended: Extended, extended_scenario: Scenario) -> None:
    """Proves: MV-02, MV-03, MV-08, ST-11."""
    scenario, (stack, _) = extended_scenario, extended
    target = stack.add_site("second")
    lamp = _running_with_addon(scenario)
    uid = _installed(scenario)["metadata"]["uid"]
    with stack.report.phase(stack.name, "addon: clusterctl move"):
        stack.clusterctl.move(
            scenario.management.kubeconfig, target.management.kubeconfig, scenario.namespace
        )
    _wait_deleted(scenario, lamp)
    scenario.management = target.management
    scenario.wait_running(2)
    _wait_status(scenario, lamp, {scenario.name: "Ready"})
    scenario.client.patch(lamp, {"spec": {"message": "over here"}})
    _wait_installed(scenario, "over here")
    assert _installed(scenario)["metadata"]["uid"] == uid, "it was never gone"
    scenario.client.delete(lamp)
    _wait_deleted(scenario, lamp)
    _wait_gone(scenario)
    scenario.delete()
    wait_nothing_left(scenario)


def _running_with_addon(scenario: Scenario) -> JSON:
    lamp = scenario.client.create(addon(scenario, "lamp", _SELECTOR))
    documents = scenario.render(control_planes=1, workers=1)
    _cluster_of(documents)["metadata"]["labels"] = dict(_SELECTOR["matchLabels"])
    scenario.create(documents)
    scenario.wait_running(2)
    _wait_installed(scenario, "hello")
    _wait_status(scenario, lamp, {scenario.name: "Ready"})
    return lamp


def _cluster_of(documents: list[JSON]) -> JSON:
    (found,) = (each for each in documents if each["kind"] == "Cluster")
    return found


def _label(scenario: Scenario, value: str | None) -> None:
    labels = {"lamp": value}
    scenario.client.patch(scenario.cluster(), {"metadata": {"labels": labels}})


def _config_map(scenario: Scenario) -> JSON | None:
    return scenario.stack.workload.client.find("v1", "ConfigMap", "lamp", "kube-system")


def _installed(scenario: Scenario) -> JSON:
    found = _config_map(scenario)
    assert found is not None, "the add-on is not there"
    return found


def _wait_installed(scenario: Scenario, message: str) -> None:
    def there() -> bool:
        data = _installed(scenario)["data"]
        if json.loads(data["spec"])["message"] != message:
            raise NotYet(f"the add-on says {data}")
        return bool(data["cluster"] == f"{scenario.namespace}/{scenario.name}")

    eventually(there, what="the add-on installed")


def _wait_gone(scenario: Scenario) -> None:
    eventually(lambda: _config_map(scenario) is None, what="the add-on gone")


def _wait_status(scenario: Scenario, lamp: JSON, wanted: dict[str, str]) -> None:
    def said() -> bool:
        status = _now(scenario, lamp).get("status", {})
        found = {each["name"]: each["reason"] for each in status.get("matchingClusters", [])}
        if found != wanted:
            raise NotYet(f"the status is {status}")
        return True

    eventually(said, what=f"the status {wanted}")


def _wait_deleted(scenario: Scenario, lamp: JSON) -> None:
    eventually(lambda: _find(scenario, lamp) is None, what="the object deleted")


def _now(scenario: Scenario, lamp: JSON) -> JSON:
    found = _find(scenario, lamp)
    assert found is not None, "the object is gone"
    return found


def _find(scenario: Scenario, lamp: JSON) -> JSON | None:
    name = lamp["metadata"]["name"]
    return scenario.client.find(*addon_kind(scenario), name, scenario.namespace)
