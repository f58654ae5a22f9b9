"""Fields come back in the short form that a person would write, and mean the same."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from capsmith.importing.compare import compare_crds
from tests.unit.importing.crds import crd, field, imported, machine_of, provider, template_of

_QUANTITY = r"^(\+|-)?[0-9]+([KMGTPE]i)?$"
_CHOICE = [{"type": "integer"}, {"type": "string"}]

_FORMS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "string"}, "string"),
    ({"type": "integer", "format": "int32"}, "int32"),
    ({"type": "array", "items": {"type": "string"}}, "string[]"),
    (
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        "string[]",
    ),
    (
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        {"type": "array", "items": "string", "x-kubernetes-list-type": "set"},
    ),
    ({"type": "string", "enum": ["b", "a"]}, {"type": "string", "enum": ["b", "a"]}),
    (
        {"type": "string", "allOf": [{"enum": ["b", "a"]}, {"enum": ["a", "b", "c"]}]},
        {"type": "string", "enum": ["b", "a"]},
    ),
    (
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "additionalProperties": "string"},
    ),
    (
        {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}},
        {"type": "object", "properties": {"b": "string!"}},
    ),
    (
        {"anyOf": _CHOICE, "x-kubernetes-int-or-string": True, "pattern": _QUANTITY},
        {"x-kubernetes-int-or-string": True, "pattern": _QUANTITY},
    ),
    (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    ),
    (
        {"x-kubernetes-preserve-unknown-fields": True},
        {"x-kubernetes-preserve-unknown-fields": True},
    ),
    (
        {"type": "string", "nullable": True, "default": "x"},
        {"type": "string", "nullable": True, "default": "x"},
    ),
    (
        {
            "type": "string",
            "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "the value is immutable"}
            ],
        },
        {"type": "string", "immutable": True},
    ),
    (
        {"type": "string", "description": "Uses ${HOME} and $$."},
        {"type": "string", "description": "Uses $(HOME} and $."},
    ),
]


@pytest.mark.parametrize(("schema", "expected"), _FORMS)
def test_a_field_has_its_short_form(schema: dict[str, Any], expected: Any) -> None:
    assert field(schema) == expected


def test_required_scalars_end_in_an_exclamation_mark() -> None:
    assert field({"type": "string"}, required=True) == "string!"
    written = field({"type": "string", "maxLength": 3}, required=True)
    assert written == {"type": "string", "required": True, "maxLength": 3}


def test_a_lossless_field_is_no_difference() -> None:
    crds = provider(spec={f"own{index}": schema for index, (schema, _) in enumerate(_FORMS)})
    (machine,) = (each for each in imported(*crds).crds if each.crd.kind == "AcmeMachine")
    assert not [each for each in machine.differences if each.field.startswith(".spec.own")]


def test_columns_names_and_rules_of_the_kind() -> None:
    columns = [
        {"name": "Size", "type": "string", "jsonPath": " .spec.size "},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    rules = [{"rule": "has(self.size)", "message": "size is needed"}]
    found = imported(
        *provider(
            spec={"size": {"type": "string"}},
            columns=columns,
            around={"x-kubernetes-validations": rules},
            names={"shortNames": [" am "], "categories": ["cluster-api", "acme"]},
        )
    )
    entry = machine_of(found)
    size = {"name": "Size", "type": "string", "jsonPath": ".spec.size"}
    assert (entry["contractColumns"], entry["printerColumns"]) == (False, [size, columns[1]])
    assert entry["validations"] == rules
    assert (entry["shortNames"], entry["categories"]) == (["am"], ["acme"])


def test_fields_of_the_contract_are_not_the_author_s() -> None:
    entry = machine_of(imported(*provider(spec={"size": {"type": "string"}})))
    assert entry["spec"] == {"size": "string"}


def test_features_follow_from_the_fields_that_are_there() -> None:
    domain = {"failureDomain": {"type": "string"}, "interruptible": {"type": "boolean"}}
    entry = machine_of(imported(*provider(status=domain)))
    assert entry["features"] == {"addresses": False, "interruptible": True}


@pytest.mark.parametrize("selector", [{}, {"labelSelectorPath": ".status.selector"}])
def test_the_subresource_scale_comes_back(selector: dict[str, str]) -> None:
    """Of any kind: the contract has it for control planes only."""
    number, text = {"type": "integer", "format": "int32"}, {"type": "string"}
    pool = crd(
        "AcmeBalancer", spec={"replicas": number}, status={"replicas": number, "selector": text}
    )
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    pool["spec"]["versions"][0]["subresources"]["scale"] = {**paths, **selector}
    found = imported(*provider(), pool)
    entry = yaml.safe_load(found.text)["infrastructure"]["AcmeBalancer"]
    assert entry["scale"] == {**paths, **selector}
    (balancer,) = (each for each in found.crds if each.crd.kind == "AcmeBalancer")
    assert not balancer.differences


def test_a_control_plane_without_the_subresource_scale_comes_back() -> None:
    number, text = {"type": "integer", "format": "int32"}, {"type": "string"}
    plane = crd(
        "AcmeControlPlane",
        group="controlplane.cluster.x-k8s.io",
        spec={"replicas": number, "version": text},
        status={"replicas": number, "readyReplicas": number, "selector": text},
    )
    found = imported(*provider(), plane)
    assert yaml.safe_load(found.text)["controlPlane"]["AcmeControlPlane"]["scale"] is False
    (imported_plane,) = (each for each in found.crds if each.crd.kind == "AcmeControlPlane")
    assert not [each for each in imported_plane.differences if "scale" in each.what]


def test_fewer_types_of_addresses_come_back() -> None:
    kinds = {"type": "string", "enum": ["ExternalIP", "InternalIP"]}
    items = {"type": "object", "properties": {"type": kinds, "address": {"type": "string"}}}
    found = imported(*provider(status={"addresses": {"type": "array", "items": items}}))
    (machine,) = (each for each in found.crds if each.crd.kind == "AcmeMachine")
    assert not [each for each in machine.differences if "addresses" in each.field]


def test_lists_that_keep_unknown_fields_of_their_items_come_back() -> None:
    items = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "array", "items": items, "x-kubernetes-preserve-unknown-fields": True}
    assert field(schema) == schema


def test_column_paths_in_brackets_and_with_dots_are_the_same() -> None:
    original = crd("A", columns=[{"name": "L", "type": "string", "jsonPath": r".a['b\.c']"}])
    other = crd("A", columns=[{"name": "L", "type": "string", "jsonPath": r".a.b\.c"}])
    assert not compare_crds(original, other)


def test_templates_that_are_missing_or_have_a_status_of_their_own() -> None:
    cluster, _, machine, template = provider()
    properties = template["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["status"]["properties"] = {"zone": {"type": "string"}}
    template["spec"]["versions"][0]["subresources"] = {"status": {}}
    template["spec"]["names"]["shortNames"] = [" amt "]
    found = imported(cluster, machine, template)
    assert machine_of(found)["template"] == {
        "status": {"zone": "string"},
        "shortNames": ["amt"],
        "requiredParts": [],
        "contractFields": {"without": ["metadata"]},
    }
    entry = yaml.safe_load(found.text)["infrastructure"]["AcmeCluster"]
    assert entry["template"] is False
    (imported_template,) = (each for each in found.crds if each.role == "InfraMachineTemplate")
    fields = {each.field for each in imported_template.differences}
    assert not [field for field in fields if field.startswith(".status")]
    assert not [each for each in imported_template.differences if "short" in each.what]


def test_a_pool_with_machines_names_their_kind_if_there_are_several() -> None:
    pool = crd(
        "AcmeMachinePool",
        spec={"providerIDList": {"type": "array", "items": {"type": "string"}}},
        status={"infrastructureMachineKind": {"type": "string"}},
    )
    one = {"providerID": {"type": "string"}}
    other = [crd("OtherMachine", spec=one), template_of("OtherMachine", one)]
    entry = yaml.safe_load(imported(*provider(), *other, pool).text)["infrastructure"]
    assert entry["AcmeMachinePool"]["machineKind"] == "AcmeMachine"
    assert entry["AcmeMachinePool"]["features"]["machines"] is True


def test_features_of_managed_control_planes_are_those_of_their_shape() -> None:
    plane = crd(
        "AcmeControlPlane",
        group="controlplane.cluster.x-k8s.io",
        spec={"version": {"type": "string"}, "replicas": {"type": "integer", "format": "int32"}},
        status={
            "externalManagedControlPlane": {"type": "boolean"},
            "version": {"type": "string"},
            "replicas": {"type": "integer", "format": "int32"},
        },
    )
    found = imported(*provider(), plane)
    (entry,) = yaml.safe_load(found.text)["controlPlane"].values()
    assert entry["features"]["externalManagedControlPlane"] is True
    assert entry["features"]["replicas"] is True
    assert "spec" not in entry
    assert {refusal.path[-2] for refusal in found.refusals} == {"without"}


def test_a_control_plane_that_names_no_infrastructure_of_machines_is_managed() -> None:
    timeouts = {"nodeDrainTimeout": {"type": "string"}}
    plane = crd(
        "AcmeControlPlane",
        group="controlplane.cluster.x-k8s.io",
        spec={
            "version": {"type": "string"},
            "machineTemplate": {"type": "object", "properties": timeouts},
        },
        status={"version": {"type": "string"}},
    )
    found = imported(*provider(), plane)
    (entry,) = yaml.safe_load(found.text)["controlPlane"].values()
    assert entry["features"]["externalManagedControlPlane"] is True
    (made,) = (each for each in found.crds if each.crd.kind == "AcmeControlPlane")
    assert not [each for each in made.differences if "machineTemplate" in each.field]


def test_a_field_that_requires_what_the_manager_cannot_know_is_not_its_feature() -> None:
    own = {
        "type": "object",
        "properties": {"providerID": {"type": "string"}, "isLatest": {"type": "boolean"}},
        "required": ["isLatest"],
    }
    pool = crd(
        "AcmeMachinePool",
        spec={"providerIDList": {"type": "array", "items": {"type": "string"}}},
        status={"instances": {"type": "array", "items": own}},
    )
    found = imported(*provider(), pool)
    entry = yaml.safe_load(found.text)["infrastructure"]["AcmeMachinePool"]
    assert entry["features"]["instances"] is False
    (made,) = (each for each in found.crds if each.crd.kind == "AcmeMachinePool")
    assert not [each for each in made.differences if "instances" in each.field]
    del own["required"]
    found = imported(*provider(), pool)
    entry = yaml.safe_load(found.text)["infrastructure"]["AcmeMachinePool"]
    assert "instances" not in entry["features"]
