"""Drawn values are what an API server would accept, and differ enough to find lossy functions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from capsmith_runtime.testing.conversion.values import fields, values
from capsmith_runtime.testing.schema_check import complaints
from capsmith_runtime.testing.value_check import value_complaints

SCHEMAS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 12, "maxLength": 14},
    {"type": "string", "pattern": "^[a-z]+/[0-9]{2}$", "maxLength": 9},
    {"type": "string", "pattern": "^(?i)[a-z0-9_]+$|^[[:digit:]]+$", "maxLength": 9},
    {"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "string", "nullable": True},
    {"type": "integer", "minimum": 3, "maximum": 9, "multipleOf": 3},
    {"type": "integer", "maximum": -5},
    {"type": "integer", "minimum": 1000},
    {"type": "number", "minimum": 0.5, "maximum": 2},
    {"type": "boolean"},
    {"x-kubernetes-int-or-string": True},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
            "required": ["name"],
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
    {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1},
    *(
        {"type": "string", "format": name}
        for name in ("byte", "cidr", "date", "date-time", "ipv4", "ipv6", "mac", "uri", "uuid")
    ),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=repr)
def test_values_are_valid(schema: dict[str, Any]) -> None:
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(values(schema))
    def check(value: Any) -> None:
        assert not [*complaints(schema, value, "x"), *value_complaints(schema, value, "x")]

    check()


def test_required_fields_are_always_there_and_others_only_if_named() -> None:
    schema = {
        "properties": {name: {"type": "string"} for name in ("a", "b", "c")},
        "required": ["a"],
    }

    @settings(max_examples=30, deadline=None)
    @given(fields(schema, ["b"]))
    def check(value: dict[str, Any]) -> None:
        assert {"a"} <= value.keys() <= {"a", "b"}

    check()
    assert find(fields(schema, ["b"]), lambda value: "b" not in value).keys() == {"a"}


def test_texts_have_separators() -> None:
    assert find(values({"type": "string"}), lambda text: text.count("/") > 1)


def test_a_pattern_that_python_does_not_have_needs_an_example() -> None:
    schema = {"type": "string", "pattern": r"\pL+"}
    with pytest.raises(ValueError, match="give the field an example"):
        values(schema)
    assert isinstance(values({**schema, "example": "a"}), st.SearchStrategy)
