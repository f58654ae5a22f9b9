"""The requests that hook methods receive, and the responses that core receives."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.contract.model import MAX_MESSAGE
from capsmith_runtime.extension import in_place, lifecycle, topology
from capsmith_runtime.extension.responses import (
    InPlace,
    Proceed,
    RetryAfter,
    UpgradePlan,
    VariableDefinition,
)
from capsmith_runtime.extension.topology import Patches
from tests.runtime.extension.hook_calls import CLUSTER, CREATE, Author, answered, handler


def test_requests_before_an_upgrade() -> None:
    steps = [{"version": "v1.33.0"}, {"version": "v1.34.1"}]
    author = Author(Proceed())
    body = {
        "settings": {"a": "b"},
        "cluster": CLUSTER,
        "fromKubernetesVersion": "v1.32.0",
        "toKubernetesVersion": "v1.34.1",
        "controlPlaneUpgrades": steps,
        "workersUpgrades": steps[1:],
    }
    answered(author, handler("BeforeClusterUpgrade", lifecycle.BEFORE_CLUSTER_UPGRADE), body)
    asked = author.request

    assert (asked.settings, asked.cluster.name) == ({"a": "b"}, "c1")
    assert (asked.from_version, asked.to_version) == ("v1.32.0", "v1.34.1")
    assert asked.control_plane_upgrades == ("v1.33.0", "v1.34.1")
    assert asked.workers_upgrades == ("v1.34.1",)

    after = {"cluster": CLUSTER, "kubernetesVersion": "v1.34.1"}
    answered(author, handler("AfterClusterUpgrade", lifecycle.AFTER_CLUSTER_UPGRADE), after)
    assert (author.request.version, author.request.workers_upgrades) == ("v1.34.1", ())


def test_an_upgrade_plan() -> None:
    """Proves: RX-14."""
    author = Author(UpgradePlan(control_plane=["v1.33.0", "v1.34.1"], workers=["v1.34.1"]))
    body = {
        "cluster": CLUSTER,
        "fromControlPlaneKubernetesVersion": "v1.32.0",
        "toKubernetesVersion": "v1.34.1",
    }
    found = answered(author, handler("GenerateUpgradePlan", lifecycle.GENERATE_UPGRADE_PLAN), body)

    assert found == {
        "status": "Success",
        "controlPlaneUpgrades": [{"version": "v1.33.0"}, {"version": "v1.34.1"}],
        "workersUpgrades": [{"version": "v1.34.1"}],
    }
    assert author.request.from_workers_version == ""


@pytest.mark.parametrize(
    "topology_of_cluster",
    [{"class": "fast"}, {"classRef": {"name": "fast"}}],
    ids=["v1beta1", "v1beta2"],
)
def test_clusters_of_both_versions(topology_of_cluster: dict[str, Any]) -> None:
    """Core before v1.13 sends v1beta1.

    Proves: RX-07.
    """
    author = Author(Proceed())
    variables = [{"name": "size", "value": 3}, "nonsense", {"value": 1}]
    spec = {"topology": {**topology_of_cluster, "version": "v1.34.0", "variables": variables}}
    body = {"cluster": {"metadata": {"name": "c1", "annotations": {"a": "b"}}, "spec": spec}}
    answered(author, CREATE, body)
    cluster = author.request.cluster

    assert (cluster.class_name, cluster.version) == ("fast", "v1.34.0")
    assert (dict(cluster.variables), cluster.annotations) == ({"size": 3}, {"a": "b"})


def test_variables_have_the_format_of_a_cluster_class() -> None:
    schema = {"type": "string", "enum": ["a"]}
    author = Author([VariableDefinition(name="size", schema=schema, required=True)])
    asked = handler("DiscoverVariables", topology.DISCOVER_VARIABLES)

    assert answered(author, asked, {"settings": {"a": "b"}}) == {
        "status": "Success",
        "variables": [{"name": "size", "required": True, "schema": {"openAPIV3Schema": schema}}],
    }
    assert author.request.settings == {"a": "b"}


@pytest.mark.parametrize(
    ("problems", "fields"),
    [([], {"status": "Success"}), (["a", "b"], {"status": "Failure", "message": "a; b"})],
)
def test_a_topology_is_rejected_with_all_errors(
    problems: list[str], fields: dict[str, Any]
) -> None:
    asked = handler("ValidateTopology", topology.VALIDATE_TOPOLOGY)
    assert answered(Author(problems), asked, {"items": []}) == fields


def test_a_string_is_not_a_list_of_errors() -> None:
    asked = handler("ValidateTopology", topology.VALIDATE_TOPOLOGY)
    assert "TypeError" in answered(Author("no"), asked, {"items": []})["message"]


def test_a_variable_of_another_type_is_reported() -> None:
    """Proves: RX-13."""

    def hook(request: Any) -> Patches:
        request.variables.value("size", int)
        return Patches()

    body = {"variables": [{"name": "size", "value": "large"}], "items": []}
    found = answered(Author(hook), handler("GeneratePatches", topology.GENERATE_PATCHES), body)
    assert found == {
        "status": "Failure",
        "message": "variable size: expected a whole number, found 'large'",
    }

    def reader(request: Any) -> Patches:
        request.variables.mapping("size")
        return Patches()

    found = answered(Author(reader), handler("GeneratePatches", topology.GENERATE_PATCHES), body)
    assert found["status"] == "Failure"
    assert "variable size: expected an object" in found["message"]


def test_in_place_updates() -> None:
    """Proves: RX-15."""
    current = {"machine": {"spec": {"version": "v1"}}, "infrastructureMachine": {"spec": {"a": 1}}}
    desired = {"machine": {"spec": {"version": "v2"}}, "infrastructureMachine": {"spec": {"a": 2}}}
    asked = handler("CanUpdateMachine", in_place.CAN_UPDATE_MACHINE)
    body = {"current": current, "desired": desired}
    found = answered(Author(InPlace(machine=["/spec/version"])), asked, body)

    assert sorted(found) == ["machinePatch", "status"]
    assert found["machinePatch"]["patchType"] == "JSONPatch"
    assert answered(Author(InPlace()), asked, body) == {"status": "Success"}

    update = handler("UpdateMachine", in_place.UPDATE_MACHINE)
    assert answered(Author(RetryAfter(9)), update, {"desired": desired})["retryAfterSeconds"] == 9


@pytest.mark.parametrize("result", [Proceed("x" * 2**20), RetryAfter(5, "\ud800" * 2**20)])
def test_a_long_message_is_cut_to_what_a_condition_holds(result: Any) -> None:
    """Core writes it into a condition of the Cluster, which the API server would refuse."""
    found = answered(Author(result), CREATE)

    assert found["status"] == "Success"
    assert len(found["message"]) == MAX_MESSAGE
