"""A field is described twice, by its rule and by the shape of its kind: both say the same."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.contract.load import list_versions, load_contract
from capsmith.contract.model import Contract, ContractField, FieldOrigin, Rule, TypeShape
from capsmith.contract.pages import load_pages
from capsmith.errors import UnreadableInput
from capsmith.manifests.crds import Schema, describe, find_field, is_required

CONTRACTS = {version: load_contract(version, resources.schemas()) for version in list_versions()}
ROLES = [
    role for page in load_pages(resources.schemas()) for role in (page.role, f"{page.role}Template")
]
SHAPES = [
    pytest.param(contract, contract.types[role], id=f"{version}-{role}")
    for version, contract in CONTRACTS.items()
    for role in ROLES
]
NOT_IN_A_CHECK = {"CRD-08", "CRD-14"}
"""Rules on fields that no check names: the template in a template, and an optional counter."""
NOT_DECLARED = {
    "CP-09": "unknown to the pages of contract v1beta1, whose status.version core goes on reading",
    "IM-07": "the old path of the failure domain, in contract v1beta2",
    "IC-13": "forbidden",
    "MP-13": "forbidden",
    "ST-04": "forbidden",
}
"""Rules with paths that the shapes do not declare, with the reason."""


def schema_of(shape: TypeShape) -> dict[str, Any]:
    def part(fields: Mapping[str, ContractField]) -> dict[str, Any]:
        properties = {name: field.schema for name, field in fields.items()}
        needed = [field.name for field in fields.values() if field.required]
        return {"type": "object", "properties": properties, "required": needed}

    return {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": part(shape.spec),
            "status": part(shape.status),
        },
    }


def fields_of(shape: TypeShape) -> Iterator[tuple[str, ContractField]]:
    for name, fields in (("spec", shape.spec), ("status", shape.status)):
        for field in fields.values():
            yield f"{name}.{field.name}", field


def typed_paths(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield the paths that the rule's check names, with their types; empty: any."""
    params = rule.check.params if rule.check is not None else {}
    for part in params.get("parts", ()):
        yield part["path"], part["type"]
    if rule.check is not None and rule.check.name in ("schema-map-list", "schema-items"):
        yield params["path"], "list"
    if rule.check is not None and rule.check.name == "control-plane-external":
        yield params["path"], "boolean"


def alternatives(rule: Rule) -> list[str]:
    """Return the paths of which one is enough."""
    if rule.check is None:
        return []
    if rule.check.name == "schema-one-of-paths":
        return [path for path, _ in typed_paths(rule)]
    return list(rule.check.params.get("also", ()))


def rules_of(contract: Contract, shape: TypeShape) -> list[Rule]:
    return [rule for rule in contract.rules.values() if shape.role in rule.applies_to]


@pytest.mark.parametrize(("contract", "shape"), SHAPES)
def test_a_field_is_named_by_its_rule_or_is_capsmiths_own(
    contract: Contract, shape: TypeShape
) -> None:
    for path, field in fields_of(shape):
        rule = contract.rules[field.rule]
        if rule.id in NOT_IN_A_CHECK:
            assert field.origin is FieldOrigin.CONTRACT
            continue
        named = [each for each, _ in typed_paths(rule)]
        is_named = any(each == path or each.startswith(f"{path}.") for each in named)
        assert is_named == (field.origin is FieldOrigin.CONTRACT), (path, rule.id)
        for own in field.own:
            assert not [each for each in named if each.startswith(f"{path}.{own}")]


@pytest.mark.parametrize(("contract", "shape"), SHAPES)
def test_a_shape_declares_what_the_rules_name(contract: Contract, shape: TypeShape) -> None:
    schema = schema_of(shape)
    for rule in rules_of(contract, shape):
        for path, type_ in typed_paths(rule):
            declared = find_field(schema, path)
            if declared is None:
                is_elsewhere = any(find_field(schema, other) for other in alternatives(rule))
                assert is_elsewhere or rule.id in NOT_DECLARED, (rule.id, path)
            else:
                assert describe(declared) == type_, (rule.id, path)


@pytest.mark.parametrize(("contract", "shape"), SHAPES)
def test_rules_and_shapes_agree_on_what_is_required(contract: Contract, shape: TypeShape) -> None:
    schema = schema_of(shape)
    for rule in rules_of(contract, shape):
        params = rule.check.params if rule.check is not None else {}
        for path in params.get("optional", ()):
            assert not is_required(schema, path), (rule.id, path)
        for name in params.get("required", ()):
            assert is_required(schema, f"{params['path']}[].{name}"), (rule.id, name)
        if params.get("needed") and not params.get("when"):
            first = params["parts"][0]["path"]
            assert find_field(schema, first) is not None, (rule.id, first)
            field = dict(fields_of(shape)).get(".".join(first.split(".")[:2]))
            assert field is None or not field.feature, (rule.id, first)


CHARACTERS = re.compile(r"([0-9]+) to ([0-9]+) characters")
NUMBERS = re.compile(r"from ([0-9]+) to ([0-9]+)")


def limits_of(schema: Schema) -> tuple[str, str]:
    least, most = (
        ("minLength", "maxLength") if schema["type"] == "string" else ("minimum", "maximum")
    )
    return str(schema.get(least, "")), str(schema.get(most, ""))


def test_rules_and_shapes_agree_on_limits() -> None:
    compared, version = 0, "v1beta2"  # the older contract has no limits
    for role in ROLES:
        shape = CONTRACTS[version].types[role]
        schema = schema_of(shape)
        for rule in rules_of(CONTRACTS[version], shape):
            for pattern, kind in ((CHARACTERS, "string"), (NUMBERS, "integer")):
                stated = set(pattern.findall(f"{rule.statement} {rule.hint}"))
                found = [
                    find_field(schema, path) for path, type_ in typed_paths(rule) if type_ == kind
                ]
                declared = {limits_of(each) for each in found if each is not None}
                assert not stated or stated == declared, (rule.id, stated, declared)
                compared += len(stated)
    assert compared >= 7


def test_own_properties_must_exist(tmp_path: Path) -> None:
    source = Path(str(resources.schemas()))
    for name in ("contracts", "kinds"):
        shutil.copytree(source / name, tmp_path / name)
    shutil.copy(source / "compatibility.yaml", tmp_path)
    file = tmp_path / "contracts/v1beta2/types/ControlPlane.yaml"
    data = yaml.safe_load(file.read_text())
    data["spec"]["rollout"]["own"] = ["before", "nothing"]
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(UnreadableInput, match="rollout has no properties nothing"):
        load_contract("v1beta2", tmp_path).types["ControlPlane"]
