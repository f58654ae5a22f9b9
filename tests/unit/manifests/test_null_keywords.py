"""Null keywords of schemas count as absent, as for the API server."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.manifests.null_keywords import drop_null_keywords, drop_nulls_of_crd
from capsmith.manifests.parse import Manifest
from tests.crd_keywords import make_crd
from tests.realapi.crd_verdicts import find_messages

_NUMBERS = ("maximum", "minimum", "multipleOf", "maxLength", "minLength", "maxItems", "minItems")
_OTHERS = (
    "maxProperties",
    "minProperties",
    "pattern",
    "format",
    "enum",
    "allOf",
    "not",
    "required",
)


@pytest.mark.parametrize(
    ("schema", "rest"),
    [
        ({"type": "string", "maxLength": None}, {"type": "string"}),
        ({"properties": {"a": None, "b": {"not": None}}}, {"properties": {"a": {}, "b": {}}}),
        ({"items": {"pattern": None}}, {"items": {}}),
        ({"allOf": [{"minimum": None}, None]}, {"allOf": [{}, {}]}),
        ({"additionalProperties": {"enum": None}}, {"additionalProperties": {}}),
        (
            {"x-kubernetes-validations": [{"rule": "true", "message": None}]},
            {"x-kubernetes-validations": [{"rule": "true"}]},
        ),
        ({"default": {"a": None}, "enum": [None]}, {"default": {"a": None}, "enum": [None]}),
    ],
)
def test_null_keywords_are_dropped(schema: dict[str, Any], rest: dict[str, Any]) -> None:
    assert drop_null_keywords(schema) == rest


def test_what_has_no_null_keywords_is_the_same() -> None:
    schema = {"properties": {"a": {"items": {"anyOf": [{"default": None}]}}}}
    del schema["properties"]["a"]["items"]["anyOf"][0]["default"]
    assert drop_null_keywords(schema) is schema
    crd = Manifest("a.yaml", 1, {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    assert drop_nulls_of_crd(crd) is crd
    assert drop_nulls_of_crd(Manifest("a.yaml", 1, {"spec": "text"})).document == {"spec": "text"}


@pytest.mark.parametrize("keyword", [*_NUMBERS, *_OTHERS])
@pytest.mark.parametrize("default", ["a", 1, ["a"], {"a": "b"}], ids=str)
def test_defaults_beside_null_keywords_are_judged(keyword: str, default: Any) -> None:
    kinds = {str: "string", int: "integer", list: "array", dict: "object"}
    schema = {"type": kinds[type(default)], "default": default, keyword: None}
    schema |= {"items": {"type": "string"}} if isinstance(default, list) else {}
    more = {"additionalProperties": {"type": "string"}} if isinstance(default, dict) else {}
    assert find_messages(make_crd({"spec": {**schema, **more}}).document) == ()
