"""Patches of a ClusterClass are refused where core's webhook refuses them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from capsmith.judge.checks.evaluate import evaluate_manifests
from capsmith.manifests.parse import parse_manifests
from tests.class_operations import REFUSED, TAKEN
from tests.rules.cases import contract

_KIND = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AcmeMachineTemplate"}


def find(patch: dict[str, Any]) -> set[str]:
    """Return the rules that a ClusterClass with one patch breaks."""
    worker = {"class": "worker", "infrastructure": {"templateRef": {**_KIND, "name": "acme"}}}
    variable = {"name": "region", "schema": {"openAPIV3Schema": {"type": "string"}}}
    document = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": "acme"},
        "spec": {
            "workers": {"machineDeployments": [worker]},
            "variables": [variable],
            "patches": [patch],
        },
    }
    manifests, _ = parse_manifests(yaml.safe_dump(document), "clusterclass-acme.yaml")
    found = {each.id for each in evaluate_manifests(manifests, contract("v1beta2"))}
    return found & {"TP-22", "TP-24"}


def build_patch(operation: dict[str, Any], *names: str) -> dict[str, Any]:
    resources = {"machineDeploymentClass": {"names": list(names or ["worker"])}}
    selector = {**_KIND, "matchResources": resources}
    definitions = [{"selector": selector, "jsonPatches": [operation]}]
    return {"name": "patch", "definitions": definitions}


@pytest.mark.parametrize("name", ["worker", "*", "work*", "*ker", "*worker"])
def test_names_with_one_star_at_an_end_select_workers(name: str) -> None:
    assert find(build_patch(TAKEN[0], name)) == set()


@pytest.mark.parametrize("name", ["w*r", "**", "*work*", "other*"])
def test_other_names_select_nothing(name: str) -> None:
    assert find(build_patch(TAKEN[0], name)) == {"TP-22"}


@pytest.mark.parametrize("operation", REFUSED, ids=str)
def test_operations_are_refused(operation: dict[str, Any]) -> None:
    assert "TP-24" in find(build_patch(operation))


@pytest.mark.parametrize(
    ("patch", "rules"),
    [
        ({"name": "a", "external": {"generatePatchesExtension": "b.c"}}, set()),
        ({"name": "a", "external": {"validateExtension": "b.c"}, "definitions": None}, set()),
        ({"name": "a", "external": {"discoverVariablesExtension": "b.c"}}, {"TP-24"}),
        ({"name": "a", "external": {}}, {"TP-24"}),
        ({"name": "a", "external": None}, {"TP-24"}),
        ({"name": "inline", "external": {"generatePatchesExtension": "b.c"}}, {"TP-24"}),
    ],
)
def test_parts_of_patches(patch: dict[str, Any], rules: set[str]) -> None:
    assert find(patch) == rules
