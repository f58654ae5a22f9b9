"""Fields of the contract that a CRD has at other paths."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.contract.model import ContractField
from capsmith.output.crd import build_crd, list_field_paths
from capsmith.output.samples import sample_spec
from capsmith.output.webhooks import compare_shapes, list_converted_paths
from capsmith.output.write_limits import list_absent_fields
from capsmith.provider.field_paths import move_fields
from capsmith.provider.model import Provider
from tests.invalid.cases import CONTRACTS
from tests.unit.provider.described import BASE, resolved, resource

_KIND = "AcmeControlPlane"
_OLD = "spec.machineTemplate.infrastructureRef"
_NEW = "spec.machineTemplate.spec.infrastructureRef"


def _made(paths: dict[str, str], contract: str = "v1beta1", **changes: Any) -> Provider:
    plane = {
        "implements": "ControlPlane",
        "bootstrap": {"group": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig"},
        "template": False,
        "contractFields": {"paths": paths},
    }
    made = resolved(
        {
            **{key: BASE[key] for key in ("capsmith", "name", "repository")},
            **{"contracts": [contract], "releases": {"v0.1": contract}},
            **{"controlPlane": {_KIND: plane}, **changes},
        }
    )
    assert made is not None
    return made


def _spec(made: Provider) -> dict[str, Any]:
    crd = build_crd(resource(made, _KIND), made.components[0])
    (version,) = crd["spec"]["versions"]
    spec: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


@pytest.mark.parametrize(("contract", "old"), [("v1beta1", _OLD), ("v1beta2", _NEW)])
def test_a_reference_is_where_the_author_wants_it(contract: str, old: str) -> None:
    made = _made({old: "spec.infrastructureTemplate"}, contract)
    spec = _spec(made)
    reference = spec["properties"]["infrastructureTemplate"]
    template: Any = CONTRACTS[contract].types["ControlPlane"].spec["machineTemplate"].schema
    usual = template["properties"]
    usual = usual if contract == "v1beta1" else usual["spec"]["properties"]
    assert reference == usual["infrastructureRef"]
    # The machine template only had to be there because of the reference.
    assert spec["required"] == ["infrastructureTemplate", "version"]
    rest = spec["properties"]["machineTemplate"]
    assert "required" not in rest
    assert "infrastructureRef" not in str(rest)
    plane = resource(made, _KIND)
    assert list_field_paths(plane) == ((old, "spec.infrastructureTemplate"),)
    assert list_absent_fields(plane) == ()
    sample = sample_spec(plane, made)
    assert "machineTemplate" not in sample
    assert sample["infrastructureTemplate"]["kind"] == "ExampleMachineTemplate"


def test_a_field_can_have_another_name_at_the_same_place() -> None:
    template = "spec.machineTemplate.infrastructureTemplate"
    spec = _spec(_made({_OLD: template, "spec.machineTemplate.nodeDrainTimeout": "spec.drain"}))
    assert spec["required"] == ["machineTemplate", "version"]
    rest = spec["properties"]["machineTemplate"]
    assert rest["required"] == ["infrastructureTemplate"]
    assert {"infrastructureRef", "nodeDrainTimeout"}.isdisjoint(rest["properties"])
    assert spec["properties"]["drain"]["type"] == "string"


def test_paths_of_another_contract_are_left_alone() -> None:
    paths = {_OLD: "spec.reference", _NEW: "spec.reference"}
    versions = [
        {"name": "v1alpha1", "contract": "v1beta1"},
        {"name": "v1beta1", "contract": "v1beta2", "storage": True},
    ]
    releases = {"v0.1": "v1beta1", "v0.2": "v1beta2"}
    made = _made(paths, contracts=["v1beta1", "v1beta2"], apiVersions=versions, releases=releases)
    plane = resource(made, _KIND)
    assert list_converted_paths(plane) == {
        "v1alpha1": ((_OLD, "spec.reference"),),
        "v1beta1": ((_NEW, "spec.reference"),),
    }
    # What a conversion moves to the contract's path has to be converted there.
    changes = {(".".join(each.old), ".".join(each.new)) for each in compare_shapes(plane)}
    assert (_OLD, _NEW) in changes


def test_an_object_that_becomes_empty_is_left_out() -> None:
    leaf = {"type": "string"}
    inner = {"type": "object", "required": ["b"], "properties": {"b": leaf}}
    schema = {"type": "object", "required": ["a", "c"], "properties": {"a": inner, "c": leaf}}
    field = ContractField("f", schema, True, "CP-13", movable=("a.b", "c"))
    rest, moved = move_fields([field], {"spec.f.a.b": "spec.x.y"})
    assert rest.required
    assert (rest.schema["required"], list(rest.schema["properties"])) == (["c"], ["c"])
    assert (moved.name, moved.required, moved.movable) == ("x", True, ())
    assert moved.schema == {"type": "object", "properties": {"y": leaf}, "required": ["y"]}
    both = move_fields([field], {"spec.f.a.b": "spec.x.y", "spec.f.c": "spec.x.z"})
    assert [(each.name, each.schema["required"]) for each in both] == [("x", ["y", "z"])]
