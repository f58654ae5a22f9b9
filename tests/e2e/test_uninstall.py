"""`clusterctl delete` and `clusterctl init` again, around a cluster that goes on running."""

from __future__ import annotations

import pytest

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.scenario import Scenario, provider_objects, wait_nothing_left
from tests.e2e.stack import Site, Stack, install_variables

_KEPT = ("CustomResourceDefinition", "Namespace")
_CLUSTER_SCOPED = (
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)


@pytest.mark.newest
def test_uninstall_and_install_again(scenario: Scenario, stack: Stack, site: Site) -> None:
    """Proves: CC-21, CC-31, CC-52."""
    provider, report = stack.provider, stack.report
    scenario.create(scenario.render(control_planes=1, workers=1))
    scenario.wait_running(2)
    objects, journal = provider_objects(scenario.client, provider.crds), scenario.journal()
    site.controllers.stop()
    with report.phase(stack.name, "clusterctl delete"):
        stack.clusterctl.delete_provider(scenario.management.kubeconfig, provider.name)
        _wait_removed(scenario)
    assert provider_objects(scenario.client, provider.crds) == objects
    with report.phase(stack.name, "clusterctl init again"):
        scenario.management.wait_clusterctl()
        stack.clusterctl.init_more(
            scenario.management.kubeconfig, provider.name, install_variables(provider)
        )
        scenario.management.wait_core_permitted()
        site.controllers.start()
    assert _installed(scenario, provider.components) == _names(provider.components)
    assert provider_objects(scenario.client, provider.crds) == objects
    with report.phase(stack.name, "scale workers 1 -> 2 after that"):
        scenario.scale_workers(2)
        scenario.wait_running(3)
    assert len(scenario.journal()) == len(journal) + 1
    scenario.delete()
    wait_nothing_left(scenario)


def _wait_removed(scenario: Scenario) -> None:
    """CC-31: also what is in no namespace goes, for its name tells whose it is."""
    components = scenario.stack.provider.components
    kept = [each for each in components if each["kind"] in _KEPT]
    removed = [each for each in components if each not in kept]
    assert {each["kind"] for each in removed} >= set(_CLUSTER_SCOPED)

    def gone() -> bool:
        left = _installed(scenario, removed)
        if left:
            raise NotYet(f"still there: {left}")
        return True

    eventually(gone, what="the provider removed")
    assert _installed(scenario, kept) == _names(kept)


def _installed(scenario: Scenario, components: list[JSON]) -> list[str]:
    return _names([each for each in components if _exists(scenario, each)])


def _exists(scenario: Scenario, obj: JSON) -> bool:
    metadata = obj["metadata"]
    found = scenario.client.find(
        obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace")
    )
    return found is not None


def _names(components: list[JSON]) -> list[str]:
    return [f"{each['kind']} {each['metadata']['name']}" for each in components]
