"""Fields of the contract come back as CRDs have them, and additions are no differences."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from capsmith.commands.load import load_contracts
from capsmith.importing.compare import compare_crds
from capsmith.importing.importer import Imported, ImportedCrd
from capsmith.importing.refusals import check_data
from capsmith.importing.report import is_equal_but_for_additions
from tests.unit.importing.crds import crd, imported, machine_of, provider


def _machines(found: Imported) -> list[ImportedCrd]:
    return [each for each in found.crds if each.crd.kind.startswith("AcmeMachine")]


def test_fields_of_the_contract_with_other_limits_come_back() -> None:
    condition = {"type": "object", "properties": {"type": {"type": "string", "maxLength": 9}}}
    conditions = {"type": "array", "items": {**condition, "required": ["type"]}}
    spec = {"providerID": {"type": "string", "maxLength": 900}, "size": {"type": "string"}}
    crds = provider(
        spec=spec, status={"conditions": conditions}, around={"required": ["size", "providerID"]}
    )
    found = imported(*crds)
    entry = machine_of(found)
    assert entry["contractFields"] == {
        "spec": {"providerID": {"type": "string", "required": True, "maxLength": 900}},
        "status": {
            "conditions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"type": {"type": "string", "required": True, "maxLength": 9}},
                },
            }
        },
        "exact": True,
    }
    assert (entry["requiredParts"], entry["template"]["requiredParts"]) == ([], [])
    assert [crd.crd.kind for crd in _machines(found)] == ["AcmeMachine", "AcmeMachineTemplate"]
    machine, _ = _machines(found)
    assert not [each for each in machine.differences if "conditions" in each.field]


def test_a_version_keeps_the_contract_s_limits_of_its_own() -> None:
    crds = provider(spec={"providerID": {"type": "string", "maxLength": 900}})
    (beta,) = crds[2]["spec"]["versions"]
    alpha = copy.deepcopy({**beta, "name": "v1alpha1", "storage": False})
    spec = alpha["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    spec["providerID"] = {"type": "string", "maxLength": 5}
    crds[2]["spec"]["versions"] = [alpha, beta]
    found = imported(*crds)
    own = machine_of(found)["versions"]["v1alpha1"]["contractFields"]
    assert own["spec"] == {"providerID": {"type": "string", "maxLength": 5}}
    assert is_equal_but_for_additions(_machines(found)[0])


def test_a_field_of_another_contract_comes_back() -> None:
    found = imported(*provider(status={"failureReason": {"type": "string"}}))
    assert machine_of(found)["contractFields"]["status"] == {"failureReason": "string"}
    assert is_equal_but_for_additions(_machines(found)[0])


def test_a_pool_of_addresses_without_allocation_comes_back_equal() -> None:
    pool = crd("AcmePool", group="ipam.cluster.x-k8s.io", spec={"network": {"type": "string"}})
    found = imported(pool)
    assert not found.refusals
    assert [each.differences for each in found.crds] == [()]
    entry = yaml.safe_load(found.text)["ipam"]["AcmePool"]
    assert "status.allocation" in entry["contractFields"]["without"]
    contracts = {contract.version: contract for contract in load_contracts()}
    warnings = [each.message for each in check_data(yaml.safe_load(found.text), contracts).findings]
    assert not [each for each in warnings if "allocation" in each]


def test_metadata_of_templates_comes_back() -> None:
    crds = provider()
    spec = crds[3]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    metadata = {"type": "object", "properties": {"name": {"type": "string"}}, "minProperties": 1}
    spec["properties"]["template"]["properties"]["metadata"] = metadata
    found = imported(*crds)
    assert machine_of(found)["template"]["metadata"] == {
        "type": "object",
        "minProperties": 1,
        "properties": {"name": "string"},
    }
    assert is_equal_but_for_additions(_machines(found)[1])


def test_required_fields_with_a_default_are_never_missing() -> None:
    filled = {"a": {"type": "string", "default": "x"}}
    first, second = crd("A", spec=filled, around={"required": ["a"]}), crd("A", spec=filled)
    assert not compare_crds(first, second)


@pytest.mark.parametrize(
    ("change", "is_addition"),
    [
        ({"names": {"categories": ["acme"]}}, True),
        ({"names": {"shortNames": ["x"]}}, False),
        ({"columns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]}, True),
        ({"spec": {"a": {"type": "string"}, "b": {"type": "string"}}}, True),
        ({"spec": {"a": {"type": "string"}, "b": {"type": "string", "default": "x"}}}, False),
        ({"around": {"required": ["a"]}}, False),
        ({"spec": {"a": {"type": "string", "maxLength": 9}}}, False),
        ({"versions": [{"name": "v1", "served": True}]}, False),
        ({"versions": [{"name": "v1", "served": False}]}, True),
    ],
)
def test_additions_are_what_objects_and_clients_do_not_notice(
    change: dict[str, Any], is_addition: bool
) -> None:
    original = crd("A", spec={"a": {"type": "string"}})
    changed = crd("A", **{"spec": {"a": {"type": "string"}}, **change})
    assert [each.is_addition for each in compare_crds(original, changed)] == [is_addition]
    assert not any(each.is_addition for each in compare_crds(changed, original))


def test_a_field_beside_unknown_ones_that_were_kept_is_no_addition() -> None:
    around = {"x-kubernetes-preserve-unknown-fields": True}
    original = crd("A", around=around)
    changed = crd("A", around=around, spec={"a": {"type": "string"}})
    assert [each.is_addition for each in compare_crds(original, changed)] == [False]


def test_a_subresource_takes_the_status_out_of_writes_of_the_object() -> None:
    status = {"a": {"type": "string"}}
    original, changed = crd("A", status=status), crd("A", status=status)
    del original["spec"]["versions"][0]["subresources"]
    assert [each.is_addition for each in compare_crds(original, changed)] == [False]
    del original["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert all(each.is_addition for each in compare_crds(original, changed))


def _domains(kind: str) -> dict[str, Any]:
    attributes = {"controlPlane": {"type": "boolean"}}
    domain = {"type": "object", "properties": {"name": {"type": "string"}, **attributes}}
    if kind == "array":
        return {"type": "array", "items": domain}
    return {"type": "object", "additionalProperties": domain}


def test_a_status_field_of_another_type_comes_back_unwritten() -> None:
    status = {"ready": {"type": "boolean"}, "failureDomains": _domains("object")}
    crds = [crd("AcmeCluster", status=status), *provider()[1:]]
    assert not [each for each in imported(*crds).crds[0].differences if not each.is_addition]

    status["failureDomains"] = _domains("array")
    label = crds[0]["metadata"]["labels"]
    for each in crds:
        each["metadata"]["labels"] = {**label, "cluster.x-k8s.io/v1beta1": "v1beta1"}
        del each["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"]
    found = imported(crd("AcmeCluster", status=status), *crds[1:])
    cluster = yaml.safe_load(found.text)["infrastructure"]["AcmeCluster"]
    assert cluster["features"]["failureDomains"] is False
    assert cluster["contractFields"]["status"]["failureDomains"]["type"] == "array"
    assert not [each for each in found.crds[0].differences if not each.is_addition]
