"""provider/example.py and provider/pattern.py: values that their schema accepts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from capsmith.output.example import (
    FORMATS,
    build_example,
    build_example_fields,
    build_field_example,
    fit_example,
)
from capsmith.output.pattern import NoSample, sample
from capsmith.provider.fields import Field
from capsmith.provider_yaml.values import find_value_errors
from capsmith.safetext import Identifier


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "example"),
        ({"type": "string", "default": "north", "enum": ["south", "north"]}, "north"),
        ({"type": "string", "enum": ["south", "north"]}, "south"),
        ({"type": "string", "nullable": True, "enum": [None, "a"]}, "a"),
        ({"type": "string", "minLength": 9}, "examplexx"),
        ({"type": "string", "maxLength": 3}, "exa"),
        ({"type": "string", "format": "cidr"}, "10.0.0.0/16"),
        ({"type": "string", "pattern": "^(?=x)x$"}, "example"),
        ({"type": "string", "pattern": "^(?i)[A-Z]{2}$"}, "AA"),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 8}, 8),
        ({"type": "integer", "minimum": 8, "exclusiveMinimum": True}, 9),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "integer", "maximum": 0, "exclusiveMaximum": True}, -1),
        ({"type": "integer", "minimum": 3, "multipleOf": 4}, 4),
        ({"type": "integer", "maximum": 5, "multipleOf": 8}, 0),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, 0.5),
        ({"type": "number", "minimum": 2}, 2),
        ({"type": "boolean"}, True),
        ({"x-kubernetes-int-or-string": True}, 1),
        ({"type": "array", "items": {"type": "string"}}, ["example"]),
        ({"type": "array", "maxItems": 0, "items": {"type": "string"}}, []),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}},
            {"a": 1},
        ),
        (
            {"type": "object", "minProperties": 1, "properties": {"a": {"type": "boolean"}}},
            {"a": True},
        ),
        (
            {"type": "object", "minProperties": 2, "additionalProperties": {"type": "string"}},
            {"example": "example", "example-2": "example"},
        ),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {}),
    ],
)
def test_the_smallest_value_that_the_schema_accepts(schema: dict[str, Any], expected: Any) -> None:
    assert build_example(schema) == expected


_TENTHS = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 0.1}
_SET = {"type": "array", "x-kubernetes-list-type": "set"}


@pytest.mark.parametrize(
    "schema",
    [
        {**_SET, "minItems": 2, "items": {"type": "string", "pattern": "^ami-[0-9a-f]{8}$"}},
        {**_SET, "minItems": 3, "items": {"type": "string", "format": "uuid"}},
        {**_SET, "minItems": 3, "items": {"type": "string", "format": "cidr"}},
        {**_SET, "minItems": 2, "items": {"type": "string", "format": "date-time"}},
        {**_SET, "minItems": 3, "items": {"type": "string", "maxLength": 3}},
        {**_SET, "minItems": 3, "items": {"type": "integer", "multipleOf": 4, "maximum": 8}},
        {**_TENTHS, "maximum": 0.2},
        {"type": "number", "minimum": 0.2, "maximum": 0.4},
        {"type": "integer", "maximum": -(2**63) + 1},
        {"type": "integer", "minimum": 2**53 + 1},
        *({"type": "string", "format": name} for name in (*FORMATS, "k8s-short-name", "password")),
        {"type": "string", "format": "ipv4", "minLength": 3},
    ],
)
def test_the_api_server_accepts_the_value(schema: dict[str, Any]) -> None:
    assert list(find_value_errors(build_example(schema), schema)) == []


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize(
    "limits",
    [
        {"minimum": 1e300, "multipleOf": 1e-9},
        {"maximum": -1e300, "multipleOf": 5e-324},
        {"minimum": 1.7976931348623157e308, "multipleOf": 2**53 + 1},
        {"minimum": 10**400},
        {"maximum": -(10**400), "multipleOf": 0.5},
        {"minimum": float("inf"), "multipleOf": 2},
    ],
    ids=["steps", "smallest", "largest", "integer", "negative", "infinite"],
)
def test_limits_of_any_size_raise_no_error(kind: str, limits: dict[str, Any]) -> None:
    schema = {"type": kind, **limits}
    assert isinstance(build_example(schema), int | float)


def test_items_of_sets_and_maps_differ() -> None:
    strings = {"type": "string"}
    assert build_example(
        {"type": "array", "minItems": 2, "items": strings, "x-kubernetes-list-type": "set"}
    ) == ["example", "example-2"]
    item = {"type": "object", "required": ["name"], "properties": {"name": strings}}
    assert build_example(
        {
            "type": "array",
            "minItems": 2,
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }
    ) == [{"name": "example"}, {"name": "example-2"}]


def test_only_required_fields_get_an_example() -> None:
    needed = Field("size", Identifier("size"), {"type": "string"}, True)
    optional = Field("disk", Identifier("disk"), {"type": "integer"}, False)
    assert build_example_fields([needed, optional]) == {"size": "example"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "ubuntu-24.04"),
        ({"type": "string", "maxLength": 9}, "example"),
        ({"type": "string", "example": "node.qcow2"}, "node.qcow2"),
        ({"type": "string", "pattern": "^ami-[0-9]{4}$"}, "ami-0000"),
    ],
)
def test_a_required_image_is_one_that_users_know(schema: dict[str, Any], expected: str) -> None:
    image = Field("image", Identifier("image"), schema, True)
    assert build_field_example(image) == expected
    assert build_example_fields([image]) == {"image": expected}


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z]{2}-[a-z]+-[0-9]$",
        r"^(north|south)[-_]?\d{1,3}$",
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        r"^([0-9]{1,3}\.){3}[0-9]{1,3}/(3[0-2]|[12]?[0-9])$",
        r"^(?:[A-Za-z0-9+/]{4})*$",
        r"^[^/\s]+/[^/\s]+$",
        r"^\+?[1-9]\w{3,}$",
        r"^[]x]\-[a\-z]$",
        r"^[a-z-][a-]$",
        r"plain",
        r"^a*?b+?$",
    ],
)
def test_a_sample_matches_its_pattern(pattern: str) -> None:
    assert re.search(pattern, sample(pattern))


def test_a_sample_keeps_the_limits() -> None:
    assert len(sample("^[a-z]+$", 12, 12)) == 12
    assert sample("^[a-z]*$", 0, 3) == ""


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "[[:alpha:]]", "(a", "[a", "a)", r"\bx", "*", "a{900}"]
)
def test_unsupported_expressions_are_refused(pattern: str) -> None:
    with pytest.raises(NoSample):
        sample(pattern)


def test_no_sample_where_the_limits_exclude_all() -> None:
    with pytest.raises(NoSample):
        sample("^a{3}$", 0, 2)


def test_an_example_fits_the_schema_of_a_crd_that_exists() -> None:
    schema = {
        "type": "object",
        "required": ["version", "template"],
        "properties": {
            "version": {"type": "string", "pattern": r"^v[0-9]+\+acme1$"},
            "template": {
                "type": "object",
                "required": ["place"],
                "properties": {"place": {"type": "string"}, "size": {"type": "integer"}},
            },
        },
    }
    own = {"version": "v1.36.0", "template": {"ref": "t", "size": 3}, "other": 1}
    fitted = {"version": "v0+acme1", "template": {"size": 3, "place": "example"}}
    assert fit_example(schema, own) == fitted
    assert fit_example(schema, fitted) == fitted
    open_ = {**schema, "x-kubernetes-preserve-unknown-fields": True}
    assert fit_example(open_, own)["other"] == 1
