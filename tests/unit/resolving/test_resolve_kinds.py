"""What is derived for a kind from its description."""

from __future__ import annotations

import json

import pytest

from capsmith.output.crd import build_spec_schema, build_status_schema, build_version_schema
from capsmith.output.topology import build_topology
from tests.invalid.cases import CONTRACTS
from tests.unit.provider.described import BASE, example, provider, resolved, resource


def test_a_kind_may_be_in_some_api_versions_only() -> None:
    """Proves: GEN-02."""
    kinds = {
        **BASE["infrastructure"],
        "AcmeImage": {"implements": "Resource", "apiVersions": ["v1beta1"]},
        "AcmeMachine": {"implements": "InfraMachine", "apiVersions": ["v1beta1", "v1alpha1"]},
    }
    versions = ["v1alpha1", {"name": "v1alpha2", "served": False}, "v1beta1"]
    made = provider(infrastructure=kinds, apiVersions=versions)
    assert {str(each.kind): [str(v.name) for v in each.versions] for each in made.resources} == {
        "AcmeCluster": ["v1alpha1", "v1alpha2", "v1beta1"],
        "AcmeClusterTemplate": ["v1alpha1", "v1alpha2", "v1beta1"],
        "AcmeMachine": ["v1alpha1", "v1beta1"],
        "AcmeMachineTemplate": ["v1alpha1", "v1beta1"],
        "AcmeImage": ["v1beta1"],
    }


def test_a_kind_without_template_is_in_no_cluster_class() -> None:
    """Proves: CRD-07, IC-14."""
    kinds = {
        "AcmeCluster": {"implements": "InfraCluster", "template": False},
        "AcmeMachine": {
            "implements": "InfraMachine",
            "spec": {"failureDomain": "string"},
            "template": {"status": {"conditions": "string[]"}},
        },
        "AcmeMachinePool": {"implements": "InfraMachinePool", "template": False},
    }
    made = provider(infrastructure=kinds)
    assert [str(each.kind) for each in made.resources] == [
        "AcmeCluster",
        "AcmeMachine",
        "AcmeMachineTemplate",
        "AcmeMachinePool",
    ]
    assert (made.cluster_classes, made.flavors) == ((), ("machinepool",))
    template = resource(made, "AcmeMachineTemplate")
    status = build_status_schema(template, template.storage_version) or {}
    assert set(status["properties"]) == {"conditions"}
    parts = build_topology(made.components[0], made)
    assert (parts.cluster_template, parts.pools) == (None, ())
    assert parts.machine_template == template


@pytest.mark.parametrize(
    ("section", "group", "accepted"),
    [
        ("controlPlane", "infrastructure", True),
        ("infrastructure", "controlplane", True),
        ("controlPlane", "addons", False),
        ("addon", "infrastructure", False),
        ("controlPlane", "ipam", False),
    ],
)
def test_sections_may_share_groups_that_core_has_access_to(
    section: str, group: str, accepted: bool
) -> None:
    """Proves: CRD-05, RB-01."""
    managed = {"implements": "ControlPlane", "features": {"externalManagedControlPlane": True}}
    data = {
        **BASE,
        "controlPlane": {"AcmeControlPlane": managed},
        "addon": {"AcmeStorage": {"implements": "Addon"}},
        "groups": {section: f"{group}.cluster.x-k8s.io"},
    }
    made = resolved(data)
    assert (made is not None) is accepted
    if made is not None:
        assert {str(each.group) for each in made.resources} >= {f"{group}.cluster.x-k8s.io"}


def test_rules_and_names_of_whole_objects_are_not_in_templates() -> None:
    rule = {"rule": "self.metadata.name != self.spec.size", "message": "choose another name"}
    machine = {
        "implements": "InfraMachine",
        "spec": {"size": "string!"},
        "objectValidations": [rule],
        "objectName": {"maxLength": 20},
    }
    made = provider(infrastructure={**BASE["infrastructure"], "AcmeMachine": machine})
    own, template = (resource(made, kind) for kind in ("AcmeMachine", "AcmeMachineTemplate"))
    schema = build_version_schema(own, own.storage_version)
    assert schema["x-kubernetes-validations"] == [rule]
    assert schema["properties"]["metadata"] == {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}},
    }
    other = build_version_schema(template, template.storage_version)
    assert "x-kubernetes-validations" not in other
    assert other["properties"]["metadata"] == {"type": "object"}


def test_limits_are_combined_as_they_are_written() -> None:
    field = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [
            {"required": ["a"], "properties": {"a": {"minLength": 2}}},
            {"required": ["b"], "not": {"required": ["a"]}},
        ],
    }
    machine = {"implements": "InfraMachine", "spec": {"either": field}}
    made = provider(infrastructure={**BASE["infrastructure"], "AcmeMachine": machine})
    (either,) = resource(made, "AcmeMachine").spec_fields
    assert either.schema["oneOf"] == field["oneOf"]
    (copied,) = resource(made, "AcmeMachineTemplate").spec_fields
    assert copied.schema == either.schema


def test_templates_have_the_fields_but_no_transition_rules() -> None:
    made = example("everything")
    template = resource(made, "NimbusClusterTemplate")
    fields = {field.name: field for field in template.spec_fields}
    assert fields["region"].required
    assert "oldSelf" not in json.dumps([field.schema for field in template.spec_fields])
    assert "oldSelf" not in json.dumps(template.spec_validations)
    assert len(template.spec_validations) == 1
    assert len(fields["loadBalancer"].schema["x-kubernetes-validations"]) == 1
    assert template.status_fields == ()
    assert template.printer_columns == ()
    own = resource(made, "NimbusCluster")
    assert json.dumps([field.schema for field in own.spec_fields]).count("oldSelf") == 4
    assert len(own.spec_validations) == 2


def test_features_are_on_unless_they_need_the_author() -> None:
    made = provider(credentials="AcmeIdentity")
    assert resource(made, "AcmeCluster").features == {
        "controlPlaneEndpoint",
        "credentials",
        "failureDomains",
        "recorded",
    }
    assert resource(made, "AcmeMachine").features == {"addresses", "failureDomain"}
    everything = example("everything")
    assert resource(everything, "NimbusMachineTemplate").features >= {"capacity", "interruptible"}
    assert "failureDomain" not in resource(everything, "NimbusServer").features
    assert "credentials" not in resource(provider(), "AcmeCluster").features


@pytest.mark.parametrize("of_version", [False, True], ids=["of-the-kind", "of-a-version"])
def test_a_field_of_the_author_s_may_have_the_name_of_the_records(of_version: bool) -> None:
    """Repositories that are older than the field of that name go on; records are annotations."""
    fields = {"spec": {"recorded": "string"}}
    cluster = {"implements": "InfraCluster", **({} if of_version else fields)}
    if of_version:
        cluster["versions"] = {"v1alpha1": fields}
    section = {**BASE["infrastructure"], "AcmeCluster": cluster}
    versions = ["v1alpha1", "v1alpha2"]
    made = provider(infrastructure=section, apiVersions=versions)
    own = resource(made, "AcmeCluster")
    assert "recorded" not in own.features
    older = next(each for each in own.versions if each.name == "v1alpha1")
    schema = build_version_schema(own, older)["properties"]["spec"]["properties"]
    assert schema["recorded"]["type"] == "string"


def test_records_are_in_objects_and_not_in_templates() -> None:
    made = provider()
    for kind, has_records in (("AcmeCluster", True), ("AcmeClusterTemplate", False)):
        each = resource(made, kind)
        assert ("recorded" in build_spec_schema(each, each.storage_version)["properties"]) is (
            has_records
        )


def test_scope_is_that_of_the_contract_data() -> None:
    made = provider(credentials="AcmeIdentity")
    for each in made.resources:
        shape = CONTRACTS["v1beta2"].types[each.role]
        assert each.namespaced == (shape.scope == "Namespaced")


def test_short_names_that_are_taken_are_not_derived() -> None:
    kinds = {
        "AcmeCluster": {"implements": "InfraCluster", "shortNames": ["acmem"]},
        "AcmeMachine": {"implements": "InfraMachine"},
        "AcmeServer": {"implements": "InfraMachine"},
    }
    made = provider(infrastructure=kinds)
    assert resource(made, "AcmeMachine").short_names == ()
    assert resource(made, "AcmeServer").short_names == ()


@pytest.mark.parametrize(
    ("section", "role", "contract"),
    [
        *(("infrastructure", role, "v1beta1") for role in ("InfraCluster", "InfraMachinePool")),
        *(
            ("infrastructure", role, "v1beta2")
            for role in ("InfraMachine", "Remediation", "Resource")
        ),
        ("bootstrap", "BootstrapConfig", "v1beta2"),
        ("controlPlane", "ControlPlane", "v1beta1"),
        ("ipam", "IPPool", "v1beta2"),
        ("ipam", "GlobalIPPool", "v1beta2"),
        ("addon", "Addon", "v1beta2"),
    ],
)
def test_each_reconciled_kind_can_report_its_generation(
    section: str, role: str, contract: str
) -> None:
    """Proves: CRD-14."""
    for switched in (True, False):
        managed = {"externalManagedControlPlane": True} if role == "ControlPlane" else {}
        features = {"observedGeneration": switched, **managed}
        kind = {"implements": role, "features": features}
        sections = {"infrastructure": BASE["infrastructure"]}
        sections[section] = {**sections.get(section, {}), "AcmeThing": kind}
        made = provider(contracts=[contract], releases={"v0.1": contract}, **sections)
        declared = resource(made, "AcmeThing")
        status = build_status_schema(declared, declared.storage_version) or {}
        field = status["properties"].get("observedGeneration", {})
        assert field.get("format") == ("int64" if switched else None)
