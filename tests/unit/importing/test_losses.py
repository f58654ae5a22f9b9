"""What cannot be expressed is reported with its path, never dropped silently."""

from __future__ import annotations

import copy
import datetime
from typing import Any

import pytest
import yaml

from capsmith.commands.load import load_contracts, load_text
from capsmith.findings import Location, Severity
from capsmith.importing.author_code import find_author_code
from capsmith.importing.compare import compare_crds
from capsmith.importing.importer import Imported
from capsmith.importing.report import collect_facts, report_differences, summarize
from capsmith.importing.source import read_sources
from capsmith.provider_yaml.parse import parse
from tests.unit.importing.crds import (
    INFRASTRUCTURE,
    crd,
    imported,
    machine_of,
    manifests_of,
    provider,
    template_of,
)


def _lost(found: Imported) -> list[str]:
    findings = report_differences(found.crds, found.refusals)
    return [each.message for each in findings if each.severity is Severity.ERROR]


def test_a_refused_part_is_reported_with_its_path_and_the_reason() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "uniqueItems": True}
    found = imported(*provider(spec={"own": schema}))
    assert machine_of(found)["spec"] == {"own": {"type": "object", "properties": {"a": "string"}}}
    lost = [message for message in _lost(found) if message.startswith("AcmeMachine ")]
    path = ".spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.own.uniqueItems"
    assert len(lost) == 1
    assert lost[0].startswith(f"AcmeMachine v1beta1 {path}: uniqueItems is not generated (")
    assert "spec-unknown-key" in lost[0]


def test_a_loss_has_its_line_and_column() -> None:
    found = imported(*provider(spec={"own": {"type": "string", "uniqueItems": True}}))
    (finding,) = (
        each
        for each in report_differences(found.crds, found.refusals)
        if each.severity is Severity.ERROR and each.message.startswith("AcmeMachine ")
    )
    crds = [each for each in found.crds if each.crd.kind == "AcmeMachine"]
    lines = crds[0].crd.manifest.text.split("\n")
    assert lines[finding.location.line - 1].strip() == "uniqueItems: true"
    assert finding.location.file == "components.yaml"
    assert lines[finding.location.line - 1].index("uniqueItems:") == finding.location.column - 1


def test_a_second_version_of_another_shape_comes_back() -> None:
    old = {
        "name": "v1alpha1",
        "served": True,
        "storage": False,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "properties": {"disk": {"type": "integer"}}}
                },
            }
        },
        "subresources": {"status": {}},
    }
    old |= {"deprecated": True, "deprecationWarning": "use v1beta1"}
    crds = provider(spec={"disk": {"type": "string"}}, versions=[old])
    found = imported(*crds)
    assert machine_of(found)["spec"] == {"disk": "string"}
    assert machine_of(found)["versions"]["v1alpha1"]["spec"] == {"disk": "integer"}
    alpha, beta = yaml.safe_load(found.text)["apiVersions"]
    assert alpha["deprecationWarning"] == "use v1beta1"
    assert "v1beta1" in (beta, *beta)
    (machine,) = (each for each in found.crds if each.crd.kind == "AcmeMachine")
    assert not [each for each in machine.differences if each.field.startswith(".spec.disk")]
    assert not [each for each in machine.differences if each.what.startswith("deprecat")]


def _alpha(spec: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "name": "v1alpha1",
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }


@pytest.mark.parametrize(
    ("hub", "hub_required", "spoke", "spoke_required", "functions"),
    [
        # Optional in the older version.
        (("zone",), ["zone"], ("zone",), [], ["spec_to_hub"]),
        # Missing in the older version.
        (("disk", "zone"), ["zone"], ("disk",), [], ["spec_to_hub"]),
        # Missing in the storage version.
        (("disk",), [], ("disk", "zone"), ["zone"], ["spec_from_hub"]),
    ],
)
def test_a_field_that_one_version_requires_is_left_to_the_authors_conversion(
    hub: tuple[str, ...],
    hub_required: list[str],
    spoke: tuple[str, ...],
    spoke_required: list[str],
    functions: list[str],
) -> None:
    text = {"type": "string"}
    old = {"type": "object", "properties": dict.fromkeys(spoke, text), "required": spoke_required}
    helper = crd(
        "AcmeZone",
        spec=dict.fromkeys(hub, text),
        around={"required": hub_required},
        versions=[_alpha(old)],
    )
    found = imported(*provider(), helper)
    (zone,) = (each for each in found.crds if each.crd.kind == "AcmeZone")
    assert [each for each in zone.differences if not each.is_addition] == []
    described = load_text(found.text, "provider.yaml").provider
    assert described is not None
    missing = list(find_author_code(described, lambda kind: Location("provider.yaml")))
    (finding,) = (each for each in missing if each.id == "import-conversion")
    for function in functions:
        assert f"{function}, because" in finding.message


def test_rules_and_names_of_whole_objects_come_back() -> None:
    crds = provider()
    schema = crds[2]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    rules = [{"rule": "self.metadata.name != 'x'", "message": "x is taken"}]
    schema["x-kubernetes-validations"] = rules
    limits = {"maxLength": 40, "pattern": "^a"}
    name = {"type": "string", **limits}
    schema["properties"]["metadata"] = {"type": "object", "properties": {"name": name}}
    found = imported(*crds)
    entry = machine_of(found)
    assert (entry["objectValidations"], entry["objectName"]) == (rules, limits)
    (machine,) = (each for each in found.crds if each.crd.kind == "AcmeMachine")
    assert not [each for each in machine.differences if "metadata" in each.field]


@pytest.mark.parametrize(
    "change",
    [
        {"scope": "Cluster"},
        {"spec": {"a": {"type": "integer"}}},
        {"spec": {"a": {"type": "string", "maxLength": 1}}},
        {"spec": {}},
        {"around": {"required": ["a"]}},
        {"names": {"shortNames": ["x"]}},
        {"columns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]},
        {"version": "v1beta2"},
    ],
)
def test_each_change_of_meaning_is_a_difference(change: dict[str, Any]) -> None:
    original = crd("A", spec={"a": {"type": "string"}})
    changed = crd("A", **{"spec": {"a": {"type": "string"}}, **change})
    assert compare_crds(original, changed)
    assert compare_crds(changed, original)
    assert not compare_crds(original, original)


def test_descriptions_and_the_order_of_keys_have_no_meaning() -> None:
    first = crd("A", spec={"a": {"type": "string", "enum": ["x", "y"], "description": "A."}})
    second = crd("A", spec={"a": {"enum": ["y", "x"], "type": "string"}})
    assert not compare_crds(first, second)


def test_numbers_of_two_types_are_equal_and_truth_values_are_not() -> None:
    first = crd("A", spec={"a": {"type": "number", "minimum": 1, "default": True}})
    second = crd("A", spec={"a": {"type": "number", "minimum": 1.0, "default": 1}})
    assert [each.what for each in compare_crds(first, second)] == ["default"]


def test_machines_without_template_and_foreign_kinds_are_further_kinds() -> None:
    helper = crd("AcmePooledMachine", spec={"host": {"type": "string"}}, scope="Cluster")
    found = imported(*provider(), helper, crd("Machine", group="cluster.x-k8s.io"))
    assert {each.crd.kind: each.role for each in found.crds if "Template" not in each.role} == {
        "AcmeCluster": "InfraCluster",
        "AcmeMachine": "InfraMachine",
        "AcmePooledMachine": "Resource",
    }
    assert "scope: Cluster" in found.text
    assert summarize(found.crds).startswith(
        "5 CRDs: 4 with a role of the contract, 1 further kinds"
    )


def test_a_kind_may_be_in_some_versions_only() -> None:
    crds = provider()
    for each in crds:
        (beta,) = each["spec"]["versions"]
        alpha = {**beta, "name": "v1alpha1", "storage": False}
        each["spec"]["versions"] = [alpha, beta]
    found = imported(*crds, crd("AcmeHost"))
    hosts = yaml.safe_load(found.text)["infrastructure"]["AcmeHost"]
    assert hosts["apiVersions"] == ["v1beta1"]
    (host,) = (each for each in found.crds if each.crd.kind == "AcmeHost")
    assert not [each for each in host.differences if each.what == "version"]


def test_a_named_role_wins() -> None:
    found = imported(*provider(), roles={"AcmeMachine": "Resource"})
    roles = {each.crd.kind: each.role for each in found.crds}
    assert roles["AcmeMachine"] == "Resource"


def test_facts_hold_both_values() -> None:
    found = imported(*provider(names={"shortNames": ["am"]}))
    cluster, *_ = collect_facts(found.crds)["crds"]
    assert cluster["role"] == "InfraCluster"
    assert not cluster["equal"]
    assert cluster["equalButForAdditions"]
    assert {each["severity"] for each in cluster["differences"]} <= {"error", "warning", "info"}


@pytest.mark.parametrize(
    "broken",
    [
        {"properties": None},
        {"properties": []},
        {"properties": {"spec": 1}},
        {"properties": {"spec": {"properties": {"a": "x", 1: {"type": "string"}}}}},
        {"properties": {"spec": {"required": 3, "x-kubernetes-validations": "x"}}},
        {"properties": {"spec": {"properties": {"a": {"enum": {}, "items": [], "anyOf": 1}}}}},
        {"properties": {"spec": {"properties": {"a": {"type": ["string"], "default": {1: 2}}}}}},
        {"properties": {"spec": {"x-kubernetes-validations": [1, {"rule": None}]}}},
    ],
)
def test_broken_schemas_are_no_crash(broken: Any) -> None:
    crds = provider()
    crds[2]["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = broken
    found = imported(*crds)
    assert list(report_differences(found.crds, found.refusals))


def test_hostile_names_reach_no_provider_yaml() -> None:
    crds = provider(spec={"a\nb: c": {"type": "string"}, "${X}": {"type": "string"}})
    found = imported(*crds)
    assert "a\nb" not in found.text
    assert "${" not in found.text
    assert "spec" not in machine_of(found)
    assert len([message for message in _lost(found) if message.startswith("AcmeMachine ")]) == 2


def test_a_hostile_kind_is_reported_and_left_out() -> None:
    found = imported(*provider(), crd("Acme'); import os", plural="evils"))
    assert "import os" not in found.text
    assert any(each.differences[0].what == "kind" for each in found.crds)


def test_a_status_without_named_fields_is_reported_with_the_reason() -> None:
    command = crd("AcmeCommand")
    schema = command["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["status"] = {
        "type": "object",
        "additionalProperties": {"type": "object", "properties": {"output": {"type": "string"}}},
    }
    lost = [each for each in _lost(imported(*provider(), command)) if "AcmeCommand" in each]
    assert len(lost) == 2
    assert all("describes a status by the names of its fields" in each for each in lost)


def test_a_loss_in_one_version_has_its_reason() -> None:
    crds = provider()
    (version,) = crds[0]["spec"]["versions"]
    older = copy.deepcopy({**version, "name": "v1alpha1", "storage": False})
    status = older["schema"]["openAPIV3Schema"]["properties"]["status"]
    status["properties"] = {"initialization": {"type": "string"}}
    crds[0]["spec"]["versions"].append(older)
    (lost,) = (each for each in _lost(imported(*crds)) if each.startswith("AcmeCluster v1alpha1"))
    assert "(contract-field-type: " in lost


def test_the_second_kind_of_a_name_is_reported_and_the_first_comes_back() -> None:
    group = f"vendor.{INFRASTRUCTURE}"
    crds = provider(spec={"size": {"type": "string"}})
    (machine,) = (each for each in imported(*crds).crds if each.crd.kind == "AcmeMachine")
    others = [crd("AcmeMachine", group=group, spec={"providerID": {"type": "string"}})]
    others += [template_of("AcmeMachine", {}), crd("AcmePlan", group=group)]
    others[1]["metadata"]["name"] = f"acmemachinetemplates.{group}"
    others[1]["spec"]["group"] = group
    found = imported(*others, *crds)

    assert machine_of(found)["spec"] == {"size": "string"}
    (same,) = (each for each in found.crds if each.crd.manifest.name == machine.crd.manifest.name)
    assert same.differences == machine.differences
    assert _lost(found) == [
        f"acmemachine{kind}s.{group}: kind is not generated (kind-repeated:"
        f" acmemachines.{INFRASTRUCTURE} has the same kind, and provider.yaml has each kind once)"
        for kind in ("", "template")
    ]


def test_kinds_of_one_name_in_two_sections_keep_the_first() -> None:
    group = "controlplane.cluster.x-k8s.io"
    spec = {"version": {"type": "string"}}
    found = imported(*provider(), crd("AcmeCluster", group=group, spec=spec))
    (lost,) = _lost(found)
    assert lost.startswith(f"acmeclusters.{group}: kind is not generated (kind-repeated:")
    assert list(yaml.safe_load(found.text)["infrastructure"]) == ["AcmeCluster", "AcmeMachine"]


def test_core_s_kinds_are_left_out() -> None:
    contract = load_contracts()[-1]
    core = manifests_of(crd("IPAddress", group="ipam.cluster.x-k8s.io"))
    assert not read_sources(core, {}, contract)


def test_values_that_yaml_reads_otherwise_are_texts_or_losses() -> None:
    values = {"a": {"type": "string", "default": datetime.date(2030, 1, 31)}}
    values["b"] = {"type": "integer", "maximum": 2**70}
    values["c"] = {"type": "string", "enum": ["x\u202e"]}
    found = imported(*provider(spec=values))
    spec = machine_of(found)["spec"]
    assert spec["a"] == {"type": "string", "default": "2030-01-31"}
    assert spec["b"] == {"type": "integer"}
    assert spec["c"] == {"type": "string", "enum": ["x"]}
    assert parse(found.text, "provider.yaml").spec is not None
    fields = {each.field for crd in found.crds for each in crd.differences}
    assert {".spec.b", ".spec.c"} <= fields
    assert ".spec.a" not in fields
