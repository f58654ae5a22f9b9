"""The shapes compared with the rules: a CRD generated from a shape meets all rules for shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.contract.load import list_versions, load_contract
from capsmith.contract.model import Contract, ContractField, TypeShape
from capsmith.judge.checks.evaluate import evaluate_manifests
from capsmith.manifests.parse import parse_manifests

CONTRACTS = {version: load_contract(version, resources.schemas()) for version in list_versions()}
SHAPES = [
    pytest.param(contract, shape, id=f"{version}-{role}")
    for version, contract in CONTRACTS.items()
    for role, shape in contract.types.items()
]
GROUP = "infrastructure.cluster.x-k8s.io"


def part(fields: Mapping[str, ContractField]) -> dict[str, Any]:
    required = [field.name for field in fields.values() if field.required]
    schema = {"type": "object", "properties": {name: f.schema for name, f in fields.items()}}
    return schema | ({"required": required} if required else {})


def crd(contract: Contract, shape: TypeShape) -> dict[str, Any]:
    kind = f"Acme{shape.role}"
    plural = "acmeidentities" if shape.role == "Identity" else f"{kind.lower()}s"
    labels = {contract.label: "v1alpha1", "clusterctl.cluster.x-k8s.io/move-hierarchy": ""}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": list(shape.printer_columns),
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": part(shape.spec),
                    "status": part(shape.status),
                },
            }
        },
        "subresources": dict(shape.subresources),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "labels": labels},
        "spec": {
            "group": GROUP,
            "scope": shape.scope,
            "names": {"kind": kind, "plural": plural, "categories": ["cluster-api"]},
            "versions": [version],
        },
    }


@pytest.mark.parametrize("version", list_versions())
def test_crds_of_the_shapes_keep_the_rules(version: str) -> None:
    contract = CONTRACTS[version]
    crds = [crd(contract, shape) for shape in contract.types.values()]
    manifests, broken = parse_manifests(yaml.safe_dump_all(crds), "crds.yaml")
    assert broken == ()
    roles = {made["metadata"]["name"]: made["spec"]["names"]["kind"][4:] for made in crds}
    assert evaluate_manifests(manifests, contract, roles) == ()


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from walk(schema[key], f"{path}[]")


@pytest.mark.parametrize(("contract", "shape"), SHAPES)
def test_schemas_hold_together(contract: Contract, shape: TypeShape) -> None:
    for field in (*shape.spec.values(), *shape.status.values()):
        for path, schema in walk(dict(field.schema), field.name):
            known = set(schema.get("properties", {}))
            assert set(schema.get("required", [])) <= known, path
            keys = schema.get("x-kubernetes-list-map-keys", [])
            assert set(keys) <= set(schema.get("items", {}).get("properties", {})), path
            if not path.endswith("[]"):
                assert schema.get("description", "").endswith("."), path
            if "pattern" in schema:
                re.compile(schema["pattern"])
            if schema.get("type") == "array" and contract.version == "v1beta2":
                assert "x-kubernetes-list-type" in schema, path


@pytest.mark.parametrize(("contract", "shape"), SHAPES)
def test_columns_show_fields_that_exist(contract: Contract, shape: TypeShape) -> None:
    fields = {"spec": shape.spec, "status": shape.status}
    names = [column["name"] for column in shape.printer_columns]
    assert len(names) == len(set(names))
    for column in shape.printer_columns:
        path = re.match(r"\.(\w+)\.(\w+)", column["jsonPath"])
        assert path is not None
        first, name = path.groups()
        assert first == "metadata" or name in fields[first]


@pytest.mark.parametrize("version", list_versions())
def test_the_scale_subresource_points_at_fields(version: str) -> None:
    shape = CONTRACTS[version].types["ControlPlane"]
    for path in shape.subresources["scale"].values():
        _, first, name = path.split(".")
        assert shape.spec[name] if first == "spec" else shape.status[name]
