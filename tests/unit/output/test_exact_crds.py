"""CRDs that exist already: without parts that capsmith adds, and templates unlike their kinds."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.output.crd import build_crd
from capsmith.output.write_limits import (
    list_absent_fields,
    list_required_in_conditions,
    list_required_status,
    needs_messages,
)
from capsmith.provider.contract_fields import find_declared_crds
from capsmith.provider.model import Provider
from tests.unit.provider.described import BASE, provider, resource

_INNER = ("spec", "template", "spec")
_RULES = "x-kubernetes-validations"


def _made(machine: dict[str, Any], **changes: Any) -> Provider:
    described = {**BASE["infrastructure"], "AcmeMachine": {"implements": "InfraMachine", **machine}}
    return provider(infrastructure=described, **changes)


def _spec(made: Provider, kind: str = "AcmeMachine") -> dict[str, Any]:
    crd = build_crd(resource(made, kind), made.components[0])
    spec: dict[str, Any] = crd["spec"]
    return spec


def _at(made: Provider, *steps: str, kind: str = "AcmeMachine", version: int = 0) -> dict[str, Any]:
    schema: dict[str, Any] = _spec(made, kind)["versions"][version]["schema"]["openAPIV3Schema"]
    for step in steps:
        schema = schema["properties"][step]
    return schema


def test_the_contract_s_columns_and_category_can_be_left_out() -> None:
    column = {"name": "Size", "type": "string", "jsonPath": ".spec.size"}
    off = {"contractColumns": False, "contractCategory": False, "categories": ["acme"]}
    made = _made({**off, "spec": {"size": "string"}, "printerColumns": [column]})
    assert _spec(made)["versions"][0]["additionalPrinterColumns"] == [column]
    assert _spec(made)["names"]["categories"] == ["acme"]
    template = _spec(made, "AcmeMachineTemplate")
    assert template["names"]["categories"] == ["acme"]
    assert "additionalPrinterColumns" not in template["versions"][0]


def test_a_template_has_its_own_columns_and_category() -> None:
    column = {"name": "Size", "type": "string", "jsonPath": ".spec.template.spec.size"}
    own = {"printerColumns": [column], "contractColumns": False, "contractCategory": False}
    made = _made({"template": own, "categories": ["acme"]})
    assert _spec(made, "AcmeMachineTemplate")["names"]["categories"] == ["acme"]
    assert _spec(made)["names"]["categories"] == ["cluster-api", "acme"]
    (version,) = _spec(made, "AcmeMachineTemplate")["versions"]
    assert version["additionalPrinterColumns"] == [column]


def test_versions_with_its_fields_have_the_subresource_scale() -> None:
    paths = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}
    fields = {"spec": {"count": "int32"}, "status": {"count": "int32"}}
    versions = [{"name": "v1alpha1", "contract": "v1beta2"}, {"name": "v1", "contract": "v1beta2"}]
    older = {"versions": {"v1alpha1": {"spec": {"size": "int32"}}}}
    made = _made({"scale": paths, **fields, **older}, apiVersions=versions)
    first, second = _spec(made)["versions"]
    assert [first["subresources"], second["subresources"]] == [
        {"status": {}},
        {"status": {}, "scale": paths},
    ]
    assert all("scale" not in v["subresources"] for v in _spec(made, "AcmeCluster")["versions"])


@pytest.mark.parametrize("scale", [True, False])
def test_the_subresource_scale_of_the_contract_can_be_left_out(scale: bool) -> None:
    plane = {
        "implements": "ControlPlane",
        "bootstrap": {"group": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig"},
        "scale": scale,
    }
    made = _made({}, controlPlane={"AcmeControlPlane": plane})
    crd = build_crd(resource(made, "AcmeControlPlane"), made.components[1])
    (version,) = crd["spec"]["versions"]
    assert ("scale" in version["subresources"]) is scale
    assert bool(find_declared_crds(made)) is not scale


def test_fields_of_the_contract_can_be_left_out() -> None:
    made = _made({"contractFields": {"without": ["status.conditions"]}})
    assert "conditions" not in _at(made, "status")["properties"]
    assert "initialization" in _at(made, "status")["properties"]
    assert [name for name in find_declared_crds(made) if "acmemachines" in name]
    assert not find_declared_crds(_made({}))


def test_exact_schemas_stay_as_they_are() -> None:
    item = {"type": "object", "properties": {"type": "string"}}
    fields = {"status": {"conditions": {"type": "array", "items": item}}}
    made = _made({"contractFields": {**fields, "exact": True}})
    assert _at(made, "status")["properties"]["conditions"]["items"]["properties"].keys() == {"type"}


def test_metadata_of_templates_can_be_left_out() -> None:
    made = _made({"template": {"contractFields": {"without": ["metadata"]}}})
    assert _at(made, "spec", "template", kind="AcmeMachineTemplate")["properties"].keys() == {
        "spec"
    }


def test_a_template_has_fields_rules_and_contract_fields_of_its_own() -> None:
    rules = [{"rule": "self.size != 'x'"}]
    own = {"spec": {"size": "string"}, "validations": rules, "contractFields": {"spec": {}}}
    made = _made({"spec": {"size": "string!", "disk": "integer"}, "template": own})
    inner = _at(made, *_INNER, kind="AcmeMachineTemplate")
    assert inner["properties"].keys() == {"size", "providerID"}
    assert "required" not in inner
    assert inner["x-kubernetes-validations"] == rules
    assert _at(made, "spec")["required"] == ["size"]


def test_a_template_keeps_transition_rules_on_demand() -> None:
    spec = {"size": {"type": "string", "immutable": True}}
    kept = _made({"spec": spec, "template": {"transitionRules": True}})
    inner = _at(kept, *_INNER, kind="AcmeMachineTemplate")["properties"]
    assert inner["size"]["x-kubernetes-validations"][0]["rule"] == "self == oldSelf"
    assert "x-kubernetes-validations" not in inner["providerID"]
    usual = _at(_made({"spec": spec}), *_INNER, kind="AcmeMachineTemplate")["properties"]
    assert "x-kubernetes-validations" not in usual["size"]


def test_a_template_differs_by_version() -> None:
    own = {"versions": {"v1alpha1": {"spec": {"old": "string"}, "requiredParts": []}}}
    made = _made({"template": own}, apiVersions=["v1alpha1", "v1beta1"])
    old = _at(made, *_INNER, kind="AcmeMachineTemplate")["properties"]
    new = _at(made, *_INNER, kind="AcmeMachineTemplate", version=1)["properties"]
    assert ("old" in old, "old" in new) == (True, False)
    assert "required" not in _at(made, "spec", kind="AcmeMachineTemplate")
    assert "required" in _at(made, "spec", kind="AcmeMachineTemplate", version=1)


def test_parts_have_limits() -> None:
    limits = {"status": {"minProperties": 1, "required": ["done"]}, "spec": {"maxProperties": 9}}
    made = _made({"status": {"done": "boolean"}, "partLimits": limits})
    status = _at(made, "status")
    assert (status["minProperties"], status["required"]) == (1, ["done"])
    assert _at(made, "spec")["maxProperties"] == 9
    assert list_required_status(resource(made, "AcmeMachine")) == (("done", "boolean"),)
    assert list_required_status(resource(made, "AcmeCluster")) == ()


def test_required_objects_name_what_they_require() -> None:
    """As in PooledRemoteMachine of k0smotron v2.1.0."""
    zone = {"type": "string", "default": "a"}
    names = {"name": "string!", "namespace": "string!", "zone": zone}
    status = {"ref": {"type": "object", "properties": names}}
    made = _made({"status": status, "partLimits": {"status": {"required": ["ref"]}}})
    assert list_required_status(resource(made, "AcmeMachine")) == (
        ("ref", "object"),
        ("ref.name", "string"),
        ("ref.namespace", "string"),
    )


def test_a_template_s_status_requires_fields_by_version() -> None:
    """As in Metal3RemediationTemplate of metal3 v1.13.2."""
    limits = {"status": {"required": ["seen"]}}
    own = {"status": {"seen": "string"}, "versions": {"v1alpha1": {"partLimits": limits}}}
    made = _made({"template": own}, apiVersions=["v1alpha1", "v1beta1"])
    old, new = (_at(made, "status", kind="AcmeMachineTemplate", version=place) for place in (0, 1))
    assert (old["required"], new.get("required")) == (["seen"], None)


def test_rules_of_the_contract_do_not_read_the_author_s_types() -> None:
    """As in KubeadmControlPlane of Cluster API v1.14.0, whose maxSurge may be a string."""
    rollout = {"type": "object", "properties": {"after": {"type": "string", "format": "date-time"}}}
    config = {"group": "bootstrap.example.com", "kind": "SlateConfig"}
    plane: dict[str, Any] = {"implements": "ControlPlane", "bootstrap": config}
    changes: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"contractFields": {"spec": {"rollout": rollout}}}, False),
        ({"contractFields": {"without": ["spec.rollout"]}}, False),
    ]
    for change, is_there in changes:
        made = provider(controlPlane={"AcmePlane": {**plane, **change}})
        component = next(each for each in made.components if each.type == "control-plane")
        crd = build_crd(resource(made, "AcmePlane"), component)
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert ("maxSurge" in str(schema["properties"]["spec"].get(_RULES))) is is_there


def test_what_is_required_differs_by_version() -> None:
    versions: dict[str, Any] = {"v1alpha1": {"requiredParts": [], "partLimits": {}}}
    described = {"spec": {"size": "string!"}, "partLimits": {"status": {"minProperties": 1}}}
    made = _made({**described, "versions": versions}, apiVersions=["v1alpha1", "v1beta1"])
    assert "required" not in _at(made)
    assert _at(made, version=1)["required"] == ["spec"]
    assert "minProperties" not in _at(made, "status")
    assert _at(made, "status", version=1)["minProperties"] == 1


def test_a_kind_stores_another_version() -> None:
    image = {
        "implements": "Resource",
        "group": "images.example.com",
        "plural": "acmepictures",
        "apiVersions": [{"name": "v1alpha1", "storage": True, "deprecated": True}],
    }
    infrastructure = {**BASE["infrastructure"], "AcmeImage": image}
    made = provider(infrastructure=infrastructure, apiVersions=["v1alpha1", "v1beta1"])
    assert resource(made, "AcmeImage").crd_name == "acmepictures.images.example.com"
    (version,) = _spec(made, "AcmeImage")["versions"]
    assert (version["name"], version["storage"], version["deprecated"]) == ("v1alpha1", True, True)
    assert [each["storage"] for each in _spec(made)["versions"]] == [False, True]


def test_a_template_is_in_versions_of_its_own() -> None:
    made = _made({"template": {"apiVersions": ["v1beta1"]}}, apiVersions=["v1alpha1", "v1beta1"])
    assert len(_spec(made)["versions"]) == 2
    assert [each["name"] for each in _spec(made, "AcmeMachineTemplate")["versions"]] == ["v1beta1"]


def test_rules_limit_the_names_of_objects_and_templates() -> None:
    rules = [{"rule": "self.size() < 9", "message": "too long"}]
    limits = {"x-kubernetes-validations": rules}
    made = _made({"objectName": limits, "template": {"objectName": limits}})
    for kind in ("AcmeMachine", "AcmeMachineTemplate"):
        name = _at(made, "metadata", "name", kind=kind)
        assert name == {"type": "string", "x-kubernetes-validations": rules}


def test_names_that_are_alike_in_python_get_numbers() -> None:
    made = _made({"spec": {"vpcID": "string", "vpc_id": "string"}})
    fields = resource(made, "AcmeMachine").spec_fields
    assert [(each.name, each.attribute) for each in fields] == [
        ("vpcID", "vpc_id"),
        ("vpc_id", "vpc_id_2"),
    ]


@pytest.mark.parametrize(("limits", "needed"), [({}, False), ({"minLength": 1}, True)])
def test_a_condition_may_need_a_message(limits: dict[str, Any], needed: bool) -> None:
    """CRDs that exist may refuse the empty message that metav1.Condition allows."""
    properties = {
        **dict.fromkeys(("type", "status", "reason", "lastTransitionTime"), "string!"),
        "observedGeneration": "int64",
        "message": {"type": "string", **limits},
    }
    conditions = {"type": "array", "items": {"type": "object", "properties": properties}}
    kinds = {
        **BASE["infrastructure"],
        "AcmeMachine": {
            "implements": "InfraMachine",
            "contractFields": {"status": {"conditions": conditions}},
        },
    }
    made = provider(infrastructure=kinds)
    assert needs_messages(resource(made, "AcmeMachine")) is needed
    assert not needs_messages(resource(made, "AcmeCluster"))


def test_the_manager_knows_which_fields_of_the_contract_a_crd_lacks() -> None:
    fields = {"type": "string!", "reason": "string!", "message": "string!"}
    items = {"type": "object", "properties": fields}
    written = {
        "status": {"conditions": {"type": "array", "items": items}},
        "without": ["status.addresses", "spec.failureDomain"],
        "exact": True,
    }
    made = _made({"contractFields": written})
    machine, cluster = resource(made, "AcmeMachine"), resource(made, "AcmeCluster")
    assert list_absent_fields(machine) == (
        "status.addresses",
        "status.conditions.status",
        "status.conditions.lastTransitionTime",
        "status.conditions.observedGeneration",
    )
    assert list_required_in_conditions(machine) == ("reason", "message")
    assert (list_absent_fields(cluster), list_required_in_conditions(cluster)) == ((), ())
