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
    manifests, _ = parse_manifests(yaml.safe_dump(_build_class(patch)), "clusterclass-acme.yaml")
    found = {each.id for each in evaluate_manifests(manifests, contract("v1beta2"))}
    return found & {"TP-22", "TP-24"}


def _build_class(patch: dict[str, Any]) -> dict[str, Any]:
    worker = {"class": "worker", "infrastructure": {"templateRef": {**_KIND, "name": "acme"}}}
    types = {"region": "string", "amount": "integer"}
    variables = [
        {"name": name, "schema": {"openAPIV3Schema": {"type": type_}}}
        for name, type_ in types.items()
    ]
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": "acme"},
        "spec": {
            "workers": {"machineDeployments": [worker]},
            "variables": variables,
            "patches": [patch],
        },
    }


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
    ("step", "is_refused"),
    [
        *(("1", True), ("-1", True), ("+01", True), ("9223372036854775807", True)),
        *(("0", False), ("-00", False), ("9223372036854775808", False), ("1_0", False)),
        *(("9" * 5000, False), ("0" * 5000 + "1", True)),
    ],
)
def test_numbers_that_go_reads_are_indexes(step: str, is_refused: bool) -> None:
    operation = {"op": "add", "path": f"/spec/template/spec/zones/{step}", "value": "a"}
    assert ("TP-24" in find(build_patch(operation))) is is_refused


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


_SIZES = {
    "size": {"type": "string"},
    "count": {"type": "integer"},
    "share": {"type": "number"},
    "port": {"x-kubernetes-int-or-string": True},
    "zones": {"type": "array", "items": {"type": "string"}},
    "disk": {
        **{"type": "object", "required": ["name", "gib"]},
        "properties": {"name": {"type": "string"}, "gib": {"type": "integer", "minimum": 1}},
    },
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


def _build_crd() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": _SIZES}
    for name in ("spec", "template", "spec"):
        schema = {"type": "object", "properties": {name: schema}}
    version = {"name": "v1beta1", "schema": {"openAPIV3Schema": schema}}
    kind = _KIND["kind"]
    return {
        **{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
        "metadata": {"name": f"{kind.lower()}s.infrastructure.cluster.x-k8s.io"},
        "spec": {
            "group": "infrastructure.cluster.x-k8s.io",
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [{**version, "served": True, "storage": True}],
        },
    }


def find_wrong_value(field: str, written: dict[str, Any]) -> str:
    """Return what TP-22 says of an operation that writes to a field of machines."""
    operation = {"op": "add", "path": f"/spec/template/spec/{field}", **written}
    crds, _ = parse_manifests(yaml.safe_dump(_build_crd()), "infrastructure-components.yaml")
    text = yaml.safe_dump(_build_class(build_patch(operation)))
    classes, _ = parse_manifests(text, "clusterclass-acme.yaml")
    found = evaluate_manifests((*crds, *classes), contract("v1beta2"))
    return "; ".join(each.message for each in found if each.id == "TP-22")


@pytest.mark.parametrize(
    ("field", "written"),
    [
        ("size", {"value": "large"}),
        ("size", {"value": "${SIZE}"}),
        ("count", {"value": 3}),
        ("port", {"value": "https"}),
        ("zones", {"value": ["a"]}),
        ("zones/-", {"value": "a"}),
        ("disk", {"value": {"name": "a"}}),
        ("disk/gib", {"value": 1}),
        ("open", {"value": {"a": 1}}),
        ("open/a", {"value": 1}),
        ("count", {"op": "remove", "value": "a"}),
        ("size", {"valueFrom": {"variable": "region"}}),
        ("port", {"valueFrom": {"variable": "region"}}),
        ("count", {"valueFrom": {"variable": "builtin.controlPlane.replicas"}}),
        ("share", {"valueFrom": {"variable": "amount"}}),
    ],
    ids=str,
)
def test_values_that_fit_their_fields(field: str, written: dict[str, Any]) -> None:
    assert find_wrong_value(field, written) == ""


@pytest.mark.parametrize(
    ("field", "written", "message"),
    [
        ("size", {"value": 3}, "/size is a number; expected string"),
        ("count", {"value": "3"}, "/count is a string; expected integer"),
        ("zones", {"value": "a"}, "/zones is a string; expected array"),
        ("zones/-", {"value": 1}, "/zones/- is a number; expected string"),
        ("disk", {"value": {"name": 1}}, "/disk/name is a number; expected string"),
        ("disk", {"value": {"nam": "a"}}, "/disk/nam is not a field"),
        ("disk/gib", {"value": -1}, "/disk/gib is `-1`"),
        (
            "count",
            {"valueFrom": {"variable": "region"}},
            "variable region for /spec/template/spec/count is of type",
        ),
        ("size", {"valueFrom": {"variable": "amount"}}, "is of type integer; expected string"),
    ],
    ids=str,
)
def test_values_of_another_type(field: str, written: dict[str, Any], message: str) -> None:
    assert message in find_wrong_value(field, written)
