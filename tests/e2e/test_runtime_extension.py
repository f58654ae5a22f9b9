"""A runtime extension that core calls: patches, variables, refusals, holds and updates."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from capsmith.clusters.processes.kube import JSON, ApiError
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from tests.e2e.extended import images
from tests.e2e.harness.provider import Controllers
from tests.e2e.scenario import Scenario, condition, provider_objects, wait_nothing_left
from tests.e2e.stack import Site, Stack, install_variables
from tests.e2e.topology import wait_reconciled

VARIABLE = "workerMachine"
CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
_TYPE = "runtime-extension"
_QUIET_SECONDS = 3.0
_IMAGE = "debian-14"
_NEXT_IMAGE = "debian-15"

Extended = tuple[Stack, Site]


def test_core_discovers_the_extension(extended: Extended, extended_scenario: Scenario) -> None:
    """Proves: RX-01, RX-03, RX-04, RX-05, RX-08, RX-09, CC-20, CC-51."""
    scenario = extended_scenario
    config = _wait_discovered(scenario)
    hooks = {each["requestHook"]["hook"] for each in config["status"]["handlers"]}
    names = {each["name"] for each in config["status"]["handlers"]}

    assert f"generate-patches.{scenario.stack.provider.name}" in names
    assert f"last-words.{scenario.stack.provider.name}" in names
    # What core of that release cannot know is not told, or it would refuse all of them.
    assert ("UpdateMachine" in hooks) is (scenario.stack.dialect.contract == "v1beta2")
    assert config["metadata"]["labels"]["cluster.x-k8s.io/provider"] == _part(extended).part.label


def test_topology_is_shaped_by_the_extension(
    extended: Extended, extended_scenario: Scenario
) -> None:
    """Proves: RX-03, RX-06, RX-07, TP-11."""
    scenario = extended_scenario
    report, stack = scenario.stack.report, scenario.stack.name
    _wait_discovered(scenario)
    documents = _documents(scenario, {"image": _IMAGE})
    _hold(_cluster_of(documents), "before-cluster-create")
    with report.phase(stack, "extension: the class has the variable of the extension"):
        scenario.create([each for each in documents if each["kind"] != "Cluster"])
        _wait_variable(scenario)
    with report.phase(stack, "extension: BeforeClusterCreate holds the cluster up"):
        scenario.create([_cluster_of(documents)])
        _wait_held(scenario, "BeforeClusterCreate")
        steadily(lambda: _nothing_made(scenario), seconds=_QUIET_SECONDS)
    with report.phase(stack, "extension: released, the cluster is created with patches"):
        _release(scenario, "before-cluster-create")
        machines = scenario.wait_running(3)
        wait_reconciled(scenario)
    _check_images(scenario, machines, _IMAGE)
    with report.phase(stack, "extension: another value rolls the workers"):
        _set_variable(scenario, {"image": _NEXT_IMAGE})
        machines = _wait_images(scenario, _NEXT_IMAGE)
    _check_refusals(scenario, machines)
    with report.phase(stack, "extension: killed, and with another certificate"):
        _crash_and_renew(extended, scenario)
        _set_variable(scenario, {"image": _IMAGE})
        _wait_images(scenario, _IMAGE)
    with report.phase(stack, "extension: BeforeClusterDelete holds the cluster up"):
        annotations = {_annotation(scenario, "last-words"): ""}
        scenario.client.patch(scenario.cluster(), {"metadata": {"annotations": annotations}})
        scenario.client.delete(scenario.cluster())
        steadily(lambda: _still_running(scenario), seconds=_QUIET_SECONDS)
        _release(scenario, "last-words")
        scenario.delete()
    scenario.delete_classes()
    wait_nothing_left(scenario)


def test_uninstalled_extension_leaves_core_alone(
    extended: Extended, extended_scenario: Scenario
) -> None:
    """Core does not start while it cannot reach an extension that is registered.

    Proves: CC-31, CC-52, RX-08, RX-09.
    """
    scenario, (stack, site) = extended_scenario, extended
    extension, management = _part(extended), scenario.management
    name = stack.provider.name
    _wait_discovered(scenario)
    extension.stop()
    with stack.report.phase(stack.name, "extension: clusterctl delete"):
        stack.clusterctl.delete_provider(management.kubeconfig, name, _TYPE)
        eventually(lambda: _find_config(scenario) is None, what="no registration")
    management.core.stop()
    management.core.start()
    with stack.report.phase(stack.name, "extension: clusterctl init again"):
        variables = install_variables(stack.provider)
        management.wait_clusterctl()
        stack.clusterctl.init_more(management.kubeconfig, name, variables, _TYPE)
        extension.start()
        _wait_discovered(scenario)
    assert site.managers[_TYPE].complaints() == []


def _check_refusals(scenario: Scenario, machines: list[JSON]) -> None:
    """What the schema does not allow core refuses; the rest is the extension's to refuse."""
    with pytest.raises(ApiError) as refused:
        _set_variable(scenario, 3)
    assert VARIABLE in refused.value.message
    before = {machine["metadata"]["uid"] for machine in machines}
    _set_variable(scenario, {"image": _IMAGE, "providerID": "homelab://mine"})

    def refused_by_extension() -> bool:
        found = condition(scenario.cluster(), "TopologyReconciled")
        if found is None or found["status"] != "False":
            raise NotYet(f"TopologyReconciled: {found}")
        return "validate-topology" in found["message"]

    eventually(refused_by_extension, what="the topology refused")
    steadily(lambda: _same_machines(scenario, before), seconds=_QUIET_SECONDS)
    _set_variable(scenario, {"image": _NEXT_IMAGE})
    wait_reconciled(scenario)
    _same_machines(scenario, before)


def _crash_and_renew(extended: Extended, scenario: Scenario) -> None:
    extension = _part(extended)
    assert extension.hooks is not None
    extension.kill()
    authority = extension.hooks.renew()
    extension.start()

    def trusted() -> bool:
        client = _config(scenario)["spec"]["clientConfig"]
        return base64.b64decode(client["caBundle"]) == authority

    eventually(trusted, what="core trusts the other authority")
    _wait_discovered(scenario)


def _wait_discovered(scenario: Scenario) -> JSON:
    def discovered() -> JSON:
        config = _config(scenario)
        found = condition(config, "Discovered")
        if found is None or found["status"] != "True":
            raise NotYet(f"Discovered: {found}")
        # Core writes conditions and handlers one after the other.
        return config if "handlers" in config["status"] else {}

    return eventually(discovered, what="the extension discovered")


def _config(scenario: Scenario) -> JSON:
    found = _find_config(scenario)
    if found is None:
        raise NotYet("there is no ExtensionConfig")
    return found


def _find_config(scenario: Scenario) -> JSON | None:
    version = scenario.client.preferred_version("runtime.cluster.x-k8s.io")
    return scenario.client.find(version, "ExtensionConfig", scenario.stack.provider.name)


def _documents(scenario: Scenario, value: Any) -> list[JSON]:
    """A cluster of a class whose last patch is the extension's."""
    documents = scenario.render(1, 2, flavor=scenario.stack.provider.topology_flavor)
    (cluster_class,) = (each for each in documents if each["kind"] == "ClusterClass")
    name = scenario.stack.provider.name
    new = scenario.stack.dialect.contract == "v1beta2"
    generate, validate = (
        ("generatePatches", "validateTopology") if new else ("generate", "validate")
    )
    external = {
        f"{generate}Extension": f"generate-patches.{name}",
        f"{validate}Extension": f"validate-topology.{name}",
        "discoverVariablesExtension": f"discover-variables.{name}",
    }
    cluster_class["spec"].setdefault("patches", []).append({"name": "ours", "external": external})
    variables = _cluster_of(documents)["spec"]["topology"].setdefault("variables", [])
    variables.append({"name": VARIABLE, "value": value})
    return documents


def _cluster_of(documents: list[JSON]) -> JSON:
    (found,) = (each for each in documents if each["kind"] == "Cluster")
    return found


def _annotation(scenario: Scenario, hook: str) -> str:
    return f"hold.{scenario.stack.provider.name}/{hook}"


def _hold(cluster: JSON, hook: str) -> None:
    annotations = cluster["metadata"].setdefault("annotations", {})
    annotations[f"hold.homelab/{hook}"] = ""


def _release(scenario: Scenario, hook: str) -> None:
    annotations = {_annotation(scenario, hook): None}
    scenario.client.patch(scenario.cluster(), {"metadata": {"annotations": annotations}})


def _wait_variable(scenario: Scenario) -> None:
    def there() -> bool:
        (found,) = scenario.client.list(scenario.core, "ClusterClass", scenario.namespace)
        names = [each["name"] for each in found.get("status", {}).get("variables", [])]
        if VARIABLE not in names:
            raise NotYet(f"variables: {names}, {found.get('status', {}).get('conditions')}")
        return True

    eventually(there, what="the variable discovered")


def _wait_held(scenario: Scenario, hook: str) -> None:
    def held() -> bool:
        found = condition(scenario.cluster(), "TopologyReconciled")
        if found is None or hook not in str(found):
            raise NotYet(f"TopologyReconciled: {found}")
        return True

    eventually(held, what=f"the cluster held up by {hook}")


def _nothing_made(scenario: Scenario) -> None:
    assert scenario.machines() == []
    assert scenario.servers() == []
    owned = {"topology.cluster.x-k8s.io/owned": ""}
    for crd in scenario.stack.provider.part("infrastructure").crds:
        spec = crd["spec"]
        if spec["scope"] == "Namespaced":
            version = f"{spec['group']}/{spec['versions'][0]['name']}"
            kind = spec["names"]["kind"]
            assert scenario.client.list(version, kind, scenario.namespace, owned) == []


def _set_variable(scenario: Scenario, value: Any) -> None:
    cluster = scenario.cluster()
    variables = cluster["spec"]["topology"]["variables"]
    others = [each for each in variables if each["name"] != VARIABLE]
    changed = [*others, {"name": VARIABLE, "value": value}]
    scenario.client.patch(cluster, {"spec": {"topology": {"variables": changed}}})


def _wait_images(scenario: Scenario, image: str) -> list[JSON]:
    """Until all workers are of that image, and all is at rest."""

    def rolled() -> bool:
        found = sorted(images(scenario).values())
        if found != ["debian-13", image, image]:
            raise NotYet(f"images: {found}")
        return True

    eventually(rolled, what=f"workers of {image}")
    machines = scenario.wait_running(3)
    wait_reconciled(scenario)
    _check_images(scenario, machines, image)
    return machines


def _check_images(scenario: Scenario, machines: list[JSON], image: str) -> None:
    """Workers have what the variable says, the control plane what its template says."""
    for machine in machines:
        wanted = "debian-13" if CONTROL_PLANE in machine["metadata"]["labels"] else image
        assert scenario.infrastructure_of(machine)["spec"]["image"] == wanted


def _same_machines(scenario: Scenario, before: set[str]) -> None:
    assert {machine["metadata"]["uid"] for machine in scenario.machines()} == before


def _still_running(scenario: Scenario) -> None:
    assert len(scenario.machines()) == 3
    assert provider_objects(scenario.client, scenario.stack.provider.namespaced_crds)
    assert all("deletionTimestamp" not in each["metadata"] for each in scenario.machines())


def _part(extended: Extended) -> Controllers:
    return extended[1].managers[_TYPE]
