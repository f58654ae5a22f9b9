"""Schemas of the contract's fields that the author declares otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.output.crd import build_crd
from capsmith.provider.model import Provider
from tests.invalid.cases import judge
from tests.unit.provider.described import BASE, provider, resource


def _made(machine: dict[str, Any], **changes: Any) -> Provider:
    described = {**BASE["infrastructure"], "AcmeMachine": {"implements": "InfraMachine", **machine}}
    return provider(infrastructure=described, **changes)


def _schema(made: Provider, kind: str = "AcmeMachine", version: int = 0) -> dict[str, Any]:
    crd = build_crd(resource(made, kind), made.components[0])
    schema: dict[str, Any] = crd["spec"]["versions"][version]["schema"]["openAPIV3Schema"]
    return schema


def test_the_author_s_limits_replace_those_of_the_contract() -> None:
    own = {"spec": {"providerID": {"type": "string", "maxLength": 900}}}
    made = _made({"contractFields": own})
    field = _schema(made)["properties"]["spec"]["properties"]["providerID"]
    assert {key: value for key, value in field.items() if key != "description"} == {
        "type": "string",
        "maxLength": 900,
    }
    spec = _schema(made, "AcmeMachineTemplate")["properties"]["spec"]["properties"]["template"]
    assert spec["properties"]["spec"]["properties"]["providerID"] == field


def test_properties_that_the_manager_writes_cannot_be_left_out() -> None:
    item = {"type": "object", "properties": {"type": "string", "own": "string"}}
    own = {"status": {"conditions": {"type": "array", "items": item}}}
    made = _schema(_made({"contractFields": own}))["properties"]["status"]["properties"]
    items = made["conditions"]["items"]
    names = {"type", "own", "status", "reason", "message", "lastTransitionTime"}
    assert names <= set(items["properties"])
    assert "required" not in items
    assert "maxLength" not in items["properties"]["type"]
    assert "x-kubernetes-list-map-keys" not in made["conditions"]


def test_an_open_object_and_a_map_stay_as_they_are() -> None:
    item = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    own = {"status": {"conditions": {"type": "array", "items": item}}}
    made = _schema(_made({"contractFields": own}))["properties"]["status"]["properties"]
    assert "properties" not in made["conditions"]["items"]


def test_a_version_has_schemas_of_its_own() -> None:
    def field(length: int) -> dict[str, Any]:
        return {"spec": {"providerID": {"type": "string", "maxLength": length}}}

    versions: dict[str, Any] = {"v1alpha1": {"contractFields": field(1)}, "v1alpha2": {}}
    made = _made(
        {"contractFields": field(2), "versions": {**versions, "v1alpha3": {"contractFields": {}}}},
        apiVersions=["v1alpha1", "v1alpha2", "v1alpha3", "v1beta1"],
    )
    lengths = [
        _schema(made, version=index)["properties"]["spec"]["properties"]["providerID"]["maxLength"]
        for index in range(4)
    ]
    assert lengths == [1, 2, 512, 2]


def test_a_field_of_another_contract_is_declared_and_never_required_in_status() -> None:
    own = {"status": {"failureReason": "string!"}}
    status = _schema(_made({"contractFields": own}))["properties"]["status"]
    assert status["properties"]["failureReason"] == {"type": "string"}
    assert "failureReason" not in status.get("required", [])


@pytest.mark.parametrize("parts", [["spec"], []])
def test_objects_are_refused_without_the_required_parts(parts: list[str]) -> None:
    made = _made({"requiredParts": parts, "spec": {"size": "string!"}})
    assert _schema(made).get("required", []) == parts
    assert _schema(made)["properties"]["spec"]["required"] == ["size"]


@pytest.mark.parametrize(
    "parts", [[], ["spec"], ["spec", "spec.template"], ["spec", "spec.template.spec"]]
)
def test_templates_are_refused_without_their_required_parts(parts: list[str]) -> None:
    made = _schema(_made({"template": {"requiredParts": parts}}), "AcmeMachineTemplate")
    spec = made["properties"]["spec"]
    found = {
        "spec": "spec" in made.get("required", []),
        "spec.template": "template" in spec.get("required", []),
        "spec.template.spec": "spec" in spec["properties"]["template"].get("required", []),
    }
    assert [part for part, is_required in found.items() if is_required] == parts


def test_metadata_of_templates_keeps_labels_and_annotations() -> None:
    own = {"type": "object", "properties": {"name": "string"}}
    made = _schema(_made({"template": {"metadata": own}}), "AcmeMachineTemplate")
    template = made["properties"]["spec"]["properties"]["template"]
    metadata = template["properties"]["metadata"]
    assert set(metadata["properties"]) == {"name", "labels", "annotations"}
    assert "minProperties" not in metadata


def test_looser_limits_are_no_finding() -> None:
    text = """
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine:
    implements: InfraMachine
    contractFields:
      spec: {providerID: {type: string, maxLength: 512}}
      status:
        addresses: {type: array, items: {type: object, properties: {address: string}}}
"""
    assert [each.id for each in judge(text)] == []
