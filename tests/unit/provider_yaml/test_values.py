"""Values against schemas, as the API server would judge a default."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.provider_yaml.values import find_value_errors

ANY = {"x-kubernetes-preserve-unknown-fields": True}
ANY_SET = {"type": "array", "x-kubernetes-list-type": "set"}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, **ANY}
MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("x", {"type": "string"}),
        (None, {"type": "string", "nullable": True}),
        (1, {"x-kubernetes-int-or-string": True}),
        ("80%", {"x-kubernetes-int-or-string": True}),
        (3, {"type": "number", "minimum": 3}),
        (3.5, {"type": "number", "exclusiveMinimum": True, "minimum": 3}),
        (6, {"type": "integer", "multipleOf": 3}),
        (9, {"type": "integer", "minimum": 1.0, "maximum": 3000000000}),
        (-(2**63), {"type": "integer", "format": "int64"}),
        (2**33, {"type": "number", "format": "int32"}),
        # The API server cuts off the fraction of a limit of whole numbers.
        (2, {"type": "number", "minimum": 2.5}),
        (2.75, {"type": "number", "minimum": 2.5}),
        (True, {"type": "boolean", "enum": [True]}),
        ({"a": 1}, {"type": "object", "additionalProperties": {"type": "integer"}}),
        ({"a": 1}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        ([{"name": "a"}, {"name": "b"}], MAP),
        ([{"a": 1}], {"x-kubernetes-preserve-unknown-fields": True}),
        ([[True], [1], [[]], []], {**ANY_SET, "items": ANY}),
        ("10.0.0.0/16", {"type": "string", "format": "cidr"}),
        ("2030-01-01T00:00:00Z", {"type": "string", "format": "date-time"}),
        ("3 days", {"type": "string", "format": "duration"}),
        ("anything", {"type": "string", "format": "unknown"}),
        ("x", {"type": "string", "anyOf": [{"format": "unknown"}]}),
        ({}, {"type": "object", "anyOf": [{"type": ""}]}),
        ("x", {"type": "string", "anyOf": [], "oneOf": []}),
        ({"apiVersion": "v1", "kind": "A", "metadata": {"labels": {"a": None}}}, EMBEDDED),
        ({"apiVersion": "v1", "kind": "A", "metadata": None}, EMBEDDED),
        (0.3, {"type": "number", "multipleOf": 0.1}),
    ],
)
def test_what_fits(value: Any, schema: dict[str, Any]) -> None:
    assert list(find_value_errors(value, schema)) == []


@pytest.mark.parametrize(
    ("value", "schema", "path", "why"),
    [
        (1, {"type": "string"}, (), "must be a string"),
        (True, {"type": "integer"}, (), "must be an integer"),
        (True, {"type": "number"}, (), "must be a number"),
        (1.5, {"type": "integer"}, (), "must be an integer"),
        ("x", {"type": "array"}, (), "must be a list"),
        ("x", {"type": "object"}, (), "must be an object"),
        ("x", {"type": "boolean"}, (), "must be a boolean"),
        (None, {"type": "string"}, (), "nullable is not set"),
        (1.5, {"x-kubernetes-int-or-string": True}, (), "an integer or a string"),
        ("10.0.0.0/33", {"type": "string", "format": "cidr"}, (), "the format `cidr`"),
        ("1.2.3", {"type": "string", "format": "ipv4"}, (), "the format `ipv4`"),
        ("2030-02-30", {"type": "string", "format": "date"}, (), "the format `date`"),
        ("٣", {"type": "string", "pattern": r"^\d$"}, (), "does not match the pattern"),
        (0.25, {"type": "number", "multipleOf": 0.1}, (), "not a multiple of 0.1"),
        (1e39, {"type": "number", "format": "float"}, (), "it is not a 32-bit float"),
        (True, {"x-kubernetes-int-or-string": True}, (), "an integer or a string"),
        (1, {"type": "integer", "enum": [True]}, (), "not a value of the enum"),
        ("b", {"x-kubernetes-int-or-string": True, "enum": ["a"]}, (), "not a value of the enum"),
        ("ab", {"type": "string", "minLength": 3}, (), "shorter than minLength 3"),
        ("ab", {"type": "string", "maxLength": 1}, (), "longer than maxLength 1"),
        ("ab", {"type": "string", "pattern": "^b"}, (), "does not match the pattern"),
        (3, {"type": "number", "exclusiveMinimum": True, "minimum": 3}, (), "below the minimum"),
        (3, {"type": "number", "exclusiveMaximum": True, "maximum": 3}, (), "above the maximum"),
        (7, {"type": "integer", "multipleOf": 3}, (), "not a multiple of 3"),
        (2**31, {"type": "integer", "format": "int32"}, (), "it is not a 32-bit integer"),
        (2**63, {"type": "integer"}, (), "it is not a 64-bit integer"),
        (3, {"type": "integer", "minimum": 0.5}, (), "minimum 0.5 is not a 64-bit integer"),
        (
            3,
            {"type": "integer", "format": "int32", "maximum": 3000000000},
            (),
            "maximum 3000000000 is not a 32-bit integer",
        ),
        (3, {"type": "number", "maximum": 1e300}, (), "above the maximum"),
        (3, {"type": "integer", "allOf": [{"format": "int64"}]}, (), "the format `int64`"),
        ({}, {"type": "object", "allOf": [{"format": "date"}]}, (), "the format `date`"),
        ({}, {"type": "object", "anyOf": [{"type": "map"}]}, (), "0 of anyOf"),
        (
            {"apiVersion": "v1", "kind": "A", "metadata": {"labels": {"a": 1}}},
            EMBEDDED,
            ("metadata", "labels", "a"),
            "a string",
        ),
        (3, {"type": "number", "multipleOf": 0.5}, (), "not a multiple of 0.5"),
        ([], {"type": "array", "minItems": 1}, (), "fewer than minItems 1"),
        ([1, 2], {"type": "array", "maxItems": 1}, (), "more than maxItems 1"),
        ([1, "x"], {"type": "array", "items": {"type": "integer"}}, (1,), "an integer"),
        ([1, 1], {"type": "array", "x-kubernetes-list-type": "set"}, (), "duplicate items"),
        (
            [*range(300), 0],
            {"type": "array", "x-kubernetes-list-type": "set"},
            (),
            "duplicate items",
        ),
        ([{"name": "a"}, {"name": "a"}], MAP, (), "the same `name`"),
        ({"b": 1}, {"type": "object", "properties": {}}, ("b",), "not declared"),
        ({}, {"type": "object", "required": ["a"]}, (), "the required `a` is missing"),
        (
            {},
            {"type": "object", "required": ["a"], "properties": {"a": {"default": 1}}},
            (),
            "the required `a` is missing",
        ),
        ({}, {"type": "object", "minProperties": 1}, (), "fewer than minProperties 1"),
    ],
)
def test_what_does_not_fit(
    value: Any, schema: dict[str, Any], path: tuple[str | int, ...], why: str
) -> None:
    ((where, reason),) = find_value_errors(value, schema)
    assert where == path
    assert why in reason
