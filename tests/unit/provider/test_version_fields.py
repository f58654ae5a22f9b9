"""Fields that differ between API versions: CRDs, samples and webhooks."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.commands.load import load_text
from capsmith.output.crd import build_crd
from capsmith.output.explain import explain_resolution
from capsmith.output.python_types import generate_version_module, list_converted_versions, needs_hub
from capsmith.output.webhooks import list_admitted_kinds
from capsmith.provider.model import Provider, Resource
from capsmith.provider.versions import get_preferred_version, has_same_type
from capsmith.provider_upgrade.request import UpgradeRequest, validate_request

_SPEC = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
apiVersions: [{{name: v1alpha1}}, {{name: v1alpha2, storage: true}}, {{name: v1beta1}}]
releases: {{v0.1: v1beta2}}
infrastructure:
  AcmeCluster: {{implements: InfraCluster}}
  AcmeMachine:
    implements: InfraMachine
    spec:
      size: string!
      zone: {{type: string, immutable: true}}
      disk: {{type: object, properties: {{gib: integer}}}}
    status: {{power: string}}
    validations: [{{rule: "self.size != 'none'"}}]
    objectValidations: [{{rule: "self.metadata.name != self.spec.zone"}}]
    printerColumns:
    - {{name: Size, type: string, jsonPath: .spec.size}}
    - {{name: Zone, type: string, jsonPath: ".spec.zone"}}
    - {{name: Power, type: string, jsonPath: .status.power}}
    webhooks: {{validation: true}}
{versions}
"""
_RULES = "x-kubernetes-validations"
_OLD = """\
    versions:
      v1alpha1:
        spec: {size: string!, place: {type: string, immutable: true}, diskGiB: integer}
        objectValidations: [{rule: "self.metadata.name != self.spec.place"}]
      v1beta1:
        status: {}
        validations: []
        printerColumns: [{name: Large, type: string, jsonPath: .spec.size}]
"""


def provider(versions: str = _OLD) -> Provider:
    understood = load_text(_SPEC.format(versions=versions), "provider.yaml")
    assert understood.provider is not None, understood.findings
    return understood.provider


def kind(name: str, found: Provider) -> Resource:
    return next(each for each in found.resources if each.kind == name)


def versions_of(name: str, found: Provider) -> dict[str, Any]:
    (component,) = found.components
    crd = build_crd(kind(name, found), component)
    return {each["name"]: each for each in crd["spec"]["versions"]}


def own(version: dict[str, Any], part: str) -> set[str]:
    properties = version["schema"]["openAPIV3Schema"]["properties"][part]["properties"]
    return set(properties) & {"size", "zone", "disk", "place", "diskGiB", "power"}


def test_every_version_has_its_own_fields() -> None:
    found = versions_of("AcmeMachine", provider())

    assert {name: own(each, "spec") for name, each in found.items()} == {
        "v1alpha1": {"size", "place", "diskGiB"},
        "v1alpha2": {"size", "zone", "disk"},
        "v1beta1": {"size", "zone", "disk"},
    }
    assert {name: own(each, "status") for name, each in found.items()} == {
        **{"v1alpha1": {"power"}, "v1alpha2": {"power"}, "v1beta1": set()},
    }


def test_templates_follow_their_kind() -> None:
    found = versions_of("AcmeMachineTemplate", provider())
    old = found["v1alpha1"]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    inner = old["properties"]["template"]["properties"]["spec"]

    assert {"size", "place", "diskGiB"} <= inner["properties"].keys()
    assert "zone" not in inner["properties"]
    assert inner["required"] == ["size"]
    # Core's dry runs change templates (IM-14).
    assert "x-kubernetes-validations" not in inner["properties"]["place"]


def test_rules_and_columns_are_those_of_the_kind_unless_given() -> None:
    found = versions_of("AcmeMachine", provider())
    rules = {
        name: [
            rule["rule"]
            for rule in each["schema"]["openAPIV3Schema"]["properties"]["spec"].get(
                "x-kubernetes-validations", ()
            )
            if "size" in rule["rule"]
        ]
        for name, each in found.items()
    }
    columns = {
        name: [column["name"] for column in each["additionalPrinterColumns"]]
        for name, each in found.items()
    }

    of_objects = {
        name: [rule["rule"] for rule in each["schema"]["openAPIV3Schema"][_RULES]]
        for name, each in found.items()
    }
    assert of_objects == {
        "v1alpha1": ["self.metadata.name != self.spec.place"],
        "v1alpha2": ["self.metadata.name != self.spec.zone"],
        "v1beta1": ["self.metadata.name != self.spec.zone"],
    }
    rule = "self.size != 'none'"
    assert rules == {"v1alpha1": [rule], "v1alpha2": [rule], "v1beta1": []}
    assert "Zone" in columns["v1alpha2"]
    assert "Zone" not in columns["v1alpha1"]
    assert {"Size", "Power"} <= set(columns["v1alpha1"])
    assert "Large" in columns["v1beta1"]
    assert not {"Size", "Zone", "Power"} & set(columns["v1beta1"])


def test_objects_are_converted_from_the_first_such_version_on() -> None:
    """Proves: CRD-15."""
    for versions, strategy in ((_OLD, "Webhook"), ("    versions: {}", "Webhook"), ("", "None")):
        found = provider(versions)
        (component,) = found.components
        for name in ("AcmeMachine", "AcmeMachineTemplate"):
            crd = build_crd(kind(name, found), component)
            assert crd["spec"]["conversion"]["strategy"] == strategy
        cluster = build_crd(kind("AcmeCluster", found), component)
        assert cluster["spec"]["conversion"]["strategy"] == "None"


def test_samples_and_webhooks_have_the_fields_of_the_storage_version() -> None:
    found = provider()
    (component,) = found.components
    (admitted,) = list_admitted_kinds(component)

    assert get_preferred_version(kind("AcmeMachine", found)) == "v1alpha2"
    assert get_preferred_version(kind("AcmeCluster", found)) == "v1beta1"
    assert admitted.versions == ("v1alpha2",)


def test_explanation_names_the_fields_of_each_version() -> None:
    machine = next(
        each
        for each in explain_resolution(provider())["components"][0]["resources"]
        if each["kind"] == "AcmeMachine"
    )

    assert machine["versionFields"]["v1alpha1"]["spec"] == {
        "size": "size: string, required",
        "place": "place: string",
        "diskGiB": "disk_gib: integer",
    }


def test_functions_exist_for_what_differs_only() -> None:
    (component,) = provider().components
    old, new = list_converted_versions(component)

    assert (old.module, old.functions) == (
        "acme_machine_v1alpha1",
        ("spec_to_hub", "spec_from_hub"),
    )
    assert [str(each.name) for each in generate_version_module(old).classes] == [
        *("Spec", "ChangedSpec", "ChangedHubSpec"),
    ]
    assert needs_hub(generate_version_module(old))
    # The status of v1beta1 has no fields from which or into which a function could convert.
    assert (new.module, new.functions) == ("acme_machine_v1beta1", ())
    assert generate_version_module(new).classes == ()


def test_required_fields_must_be_returned() -> None:
    old = (
        "    versions: {v1alpha1: {spec: {size: string!, place: string!, diskGiB: integer},"
        " objectValidations: []}}"
    )
    (component,) = provider(old).components
    (converted,) = list_converted_versions(component)
    changed = next(
        each for each in generate_version_module(converted).classes if each.name == "ChangedSpec"
    )

    assert [(str(f.annotation), str(f.assignment)) for f in changed.fields] == [
        ("str", ""),
        ("int | None", " = field(default=None, metadata={'json': 'diskGiB'})"),
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"type": "string"}, {"type": "string", "maxLength": 3, "description": "x"}, True),
        ({"type": "string"}, {"type": "integer"}, False),
        ({"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["b", "a"]}, True),
        ({"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a", "b"]}, False),
        ({"type": "integer", "enum": [1]}, {"type": "integer", "enum": [True]}, False),
        ({"type": "string"}, {"type": "string", "nullable": True}, False),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            False,
        ),
        (
            {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
            {"type": "array", "items": {"type": "object", "properties": {"b": {}}}},
            False,
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string", "pattern": "a"}},
            True,
        ),
        ({"type": "object"}, {"type": "object", "additionalProperties": {"type": "string"}}, False),
    ],
)
def test_types_are_compared_without_limits(
    one: dict[str, Any], other: dict[str, Any], same: bool
) -> None:
    assert has_same_type(one, other) is same
    assert has_same_type(other, one) is same


@pytest.mark.parametrize(
    ("versions", "hint"),
    [
        (_OLD, "Remove them and repeat the command."),
        (
            "    versions: {v1alpha1: {spec: {size: string!, zone: string}}}",
            "Write `versions: {}` and repeat the command: the CRD keeps its webhook.",
        ),
    ],
)
def test_a_version_with_fields_is_not_dropped(versions: str, hint: str) -> None:
    text = _SPEC.format(versions=versions)
    text = text.replace("{name: v1alpha1}", "{name: v1alpha1, served: false}")
    loaded = load_text(text, "provider.yaml")
    assert loaded.draft is not None
    assert loaded.document is not None

    (finding,) = validate_request(UpgradeRequest(drop=("v1alpha1",)), loaded.draft, loaded.document)

    assert (finding.id, finding.hint) == ("drop-fields", hint)
    assert finding.location.line == text[: text.index("v1alpha1:")].count("\n") + 1
