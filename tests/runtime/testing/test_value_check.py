"""Samples are checked as exactly as an API server checks them."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.output.example import FORMATS
from capsmith_runtime.testing.value_check import value_complaints


def complaints(schema: dict[str, Any], value: Any) -> list[str]:
    return list(value_complaints(schema, value, "spec"))


@pytest.mark.parametrize("name", FORMATS)
def test_examples_of_all_formats_are_accepted(name: str) -> None:
    assert complaints({"type": "string", "format": name}, FORMATS[name]) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "pattern": "^a+$"}, "aa"),
        ({"type": "string", "pattern": "^[[:alpha:]]+\\z"}, "aa"),
        ({"type": "integer", "minimum": 1, "maximum": 3, "multipleOf": 1}, 3),
        ({"type": "number", "multipleOf": 0.1}, 0.3),
        ({"type": "array", "x-kubernetes-list-type": "set"}, ["a", "b"]),
        ({"type": "object", "additionalProperties": {"type": "string", "format": "ipv4"}}, {}),
    ],
)
def test_valid_values_are_accepted(schema: dict[str, Any], value: Any) -> None:
    assert complaints(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "pattern": "^a+$"}, "b"),
        *(
            ({"type": "string", "format": name}, "no")
            for name in ("cidr", "date", "date-time", "ipv4", "ipv6", "mac", "uri", "uuid", "ssn")
        ),
        ({"type": "string", "format": "cidr"}, "10.0.0.0"),
        ({"type": "string", "format": "uuid4"}, "9c2a4f5e-8d1b-5b7a-9a54-0d9a9d1c2f11"),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 1),
        ({"type": "integer", "maximum": 3}, 4),
        ({"type": "number", "multipleOf": 0.1}, 0.25),
        ({"type": "array", "x-kubernetes-list-type": "set"}, ["a", "a"]),
        ({"type": "array", "items": {"type": "string", "format": "ipv4"}}, ["1.2.3"]),
        ({"type": "object", "additionalProperties": {"type": "integer", "maximum": 1}}, {"a": 2}),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "b"}}}, {"a": "a"}),
    ],
)
def test_invalid_values_are_reported(schema: dict[str, Any], value: Any) -> None:
    (complaint,) = complaints(schema, value)
    assert complaint.startswith("spec")
