"""The test client's API server accepts and completes objects as a real one does."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.testing.schema_check import complaints, with_defaults

_INTEGER = {"type": "integer"}
_OBJECT = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
_EITHER = {"x-kubernetes-int-or-string": True, "anyOf": [_INTEGER, {"type": "string"}]}
_EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": {}}}
_KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["a"],
    "items": _OBJECT,
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (_INTEGER, 3.0),
        ({**_INTEGER, "enum": []}, 3),
        ({**_INTEGER, "anyOf": [], "oneOf": []}, 3),
        (_EITHER, "10%"),
        (_EMBEDDED, {"apiVersion": "v1", "kind": "A", "metadata": {}, "a": 1}),
        ({**_OBJECT, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": "x"}),
        ({**_OBJECT, "not": {"required": ["a", "b"]}}, {"b": "x"}),
        ({**_OBJECT, "anyOf": [{"properties": {"a": {"pattern": "^x"}}}]}, {"a": "xy", "b": "z"}),
        ({"type": "array", "items": _INTEGER, "allOf": [{"items": {"minimum": 1}}]}, [1, 2]),
        (_KEYED, [{"a": "x"}, {"a": "y"}]),
    ],
)
def test_what_the_server_accepts(schema: dict[str, Any], value: Any) -> None:
    assert list(complaints(schema, value, "spec")) == []


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (_INTEGER, 3.5, "must be integer"),
        (_INTEGER, True, "must be integer"),
        ({**_INTEGER, "enum": [1]}, 2, "must be one of"),
        ({"type": "boolean", "enum": [True]}, False, "must be one of"),
        (_EITHER, True, "neither a number nor text"),
        ({**_EITHER, "maxLength": 2}, "10%", "maxLength is 2"),
        ({**_OBJECT, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "0 of the schemas"),
        (
            {**_OBJECT, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": "x", "b": "y"},
            "2 of the schemas in oneOf",
        ),
        ({**_OBJECT, "not": {"required": ["b"]}}, {"b": "x"}, "the schema in not"),
        ({**_OBJECT, "anyOf": [{"properties": {"a": {"pattern": "^x"}}}]}, {"a": "z"}, "anyOf"),
        (
            {"type": "array", "items": _INTEGER, "allOf": [{"items": {"minimum": 1}}]},
            [0],
            "minimum",
        ),
        (_KEYED, [{"a": "x"}, {"a": "x"}], "another item has the same a"),
    ],
)
def test_what_the_server_refuses(schema: dict[str, Any], value: Any, why: str) -> None:
    (complaint,) = complaints(schema, value, "spec")
    assert why in complaint


def test_null_is_missing_where_a_field_is_not_nullable() -> None:
    fields = {
        "size": {"type": "integer", "default": 3},
        "name": {"type": "string"},
        "note": {"type": "string", "nullable": True, "default": "x"},
    }
    schema = {"type": "object", "properties": fields}
    value = {"size": None, "name": None, "note": None, "other": None}
    assert with_defaults(schema, value) == {"size": 3, "note": None, "other": None}
    assert with_defaults({"type": "array", "items": schema}, [{}]) == [{"size": 3, "note": "x"}]
