"""Objects of templates: verify and the API server refuse the same values (CC-80)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from capsmith.judge.checks.mismatches import find_mismatches
from tests.e2e.releases import is_kubernetes_since
from tests.realapi.test_rules import FIELDS

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAME = "limits.verify.example.com"
_OBJECTS = "/apis/verify.example.com/v1/namespaces/default/limits"
_LISTS = {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer", "minimum": 1}}
_SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "string", "enum": ["small", "large"]},
        "text": {"type": "string", "minLength": 2, "maxLength": 4},
        "form": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
        "word": {"type": "string", "pattern": r"\bx\d"},
        "count": {"type": "integer", "minimum": 1, "maximum": 3},
        "share": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
        "below": {"type": "integer", "maximum": 10, "exclusiveMaximum": True, "multipleOf": 5},
        "list": _LISTS,
        "map": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 2,
            "additionalProperties": {"type": "string", "maxLength": 2},
        },
        "nested": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "zone": {"type": "string", "default": "a"}},
        },
        "port": FIELDS["port"],
        "quantity": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+%$",
        },
        "cidr": {"type": "string", "format": "cidr"},
        "uuid": {"type": "string", "format": "uuid"},
        "other": {"type": "string", "format": "acme"},
        "address": {"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
        "excluded": {"type": "string", "not": {"format": "ipv4"}},
        "int32": {"type": "integer", "format": "int32"},
        "float": {"type": "number", "format": "float"},
        "double": {"type": "number", "format": "double"},
        "set": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "items": {"type": "string"},
        },
        "mounts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["path", "mode"],
            "items": {
                "type": "object",
                "required": ["path"],
                "properties": {
                    "path": {"type": "string"},
                    "mode": {"type": "string", "default": "rw"},
                    "size": {"type": "integer"},
                },
            },
        },
        "sized": {
            "type": "object",
            "minProperties": 2,
            "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "string"}},
        },
        "image": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "name": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "arch": {"type": "string", "default": "amd64"},
            },
            "oneOf": [{"required": ["id"]}, {"required": ["name"]}],
            "allOf": [
                {"required": ["arch"]},
                {"properties": {"id": {"minLength": 4}, "tags": {"items": {"maxLength": 3}}}},
            ],
            "not": {"required": ["name"], "properties": {"name": {"enum": ["latest"]}}},
        },
        "network": {"type": "string", "anyOf": [{"pattern": "^net-"}, {"maxLength": 0}]},
        "range": {"type": "integer", "anyOf": [{"maximum": 3}, {"minimum": 7}]},
    },
}
_SCHEMA = {"type": "object", "properties": {"spec": _SPEC}}
TAKEN: list[dict[str, Any]] = [
    {},
    {"text": "ab"},
    {"text": "äöüß"},
    {"form": "a-b"},
    {"word": "a x1"},
    {"count": 3, "share": 1, "below": 5},
    {"share": 0.001},
    {"list": [1, 2]},
    {"map": {"a": "b"}},
    {"nested": {"name": ""}},
    {"port": "a"},
    {"quantity": 5},
    {"quantity": "5%"},
    {"cidr": "10.0.0.0/8", "uuid": "6c6e6b6a-0000-4000-8000-000000000000"},
    {"other": "anything"},
    {"int32": 2**31 - 1},
    {"float": 3.4e38},
    {"double": 1e300},
    {"address": "10.0.0.1"},
    {"address": "::1"},
    {"excluded": "lan"},
    {"set": ["a", "b"]},
    {"mounts": [{"path": "/a"}, {"path": "/a", "mode": "ro"}]},
    {"sized": {"b": ""}},
    {"image": {"id": "1234", "tags": ["abc"]}},
    {"image": {"name": "old"}},
    {"network": "net-1"},
    {"network": ""},
    {"range": 8},
]
REFUSED: list[dict[str, Any]] = [
    {"size": "huge"},
    {"size": ""},
    {"text": "a"},
    {"text": "äöüßé"},
    {"form": "a_b"},
    {"form": "a\n"},
    {"word": "ax1"},
    {"word": "x٣"},
    {"count": 0},
    {"count": 4},
    {"share": 0},
    {"share": 1.01},
    {"below": 10},
    {"below": 4},
    {"list": []},
    {"list": [1, 2, 3]},
    {"list": [0]},
    {"map": {}},
    {"map": {"a": "b", "c": "d", "e": "f"}},
    {"map": {"a": "bcd"}},
    {"nested": {}},
    {"nested": {"zone": "b"}},
    {"count": "1"},
    {"port": 1.5},
    {"quantity": "five"},
    {"cidr": "10.0.0.0"},
    {"uuid": "6c6e"},
    {"address": "host"},
    {"excluded": "10.0.0.1"},
    {"set": ["a", "b", "a"]},
    {"mounts": [{"path": "/a"}, {"path": "/a", "mode": "rw", "size": 1}]},
    {"sized": {}},
    {"image": {}},
    {"image": {"id": "123"}},
    {"image": {"id": "1234", "name": "old"}},
    {"image": {"id": "1234", "tags": ["abcd"]}},
    {"image": {"name": "latest"}},
    {"network": "lan"},
    {"range": 5},
]
BEYOND_THEIR_FORMAT: list[dict[str, Any]] = [
    {"int32": 2**31},
    {"int32": -(2**31) - 1},
    {"float": 3.5e38},
]


@pytest.fixture(scope="module")
def limits(api: KubeClient) -> Iterator[KubeClient]:
    names = {"plural": "limits", "singular": "limit", "kind": "Limit", "listKind": "LimitList"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _SCHEMA},
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": _NAME},
        "spec": {
            "group": "verify.example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    api.request("POST", _CRDS, body=crd)
    try:
        eventually(lambda: api.request("GET", _OBJECTS), what="the kind is served")
        yield api
    finally:
        api.request("DELETE", f"{_CRDS}/{_NAME}")


@pytest.mark.parametrize("spec", TAKEN, ids=str)
def test_object_that_is_taken_fits(limits: KubeClient, spec: dict[str, Any]) -> None:
    assert refusal(limits, spec) == ""
    assert found(spec) == []


@pytest.mark.parametrize("spec", BEYOND_THEIR_FORMAT, ids=str)
def test_number_beyond_its_format_is_refused_since_v1_36(
    limits: KubeClient, spec: dict[str, Any]
) -> None:
    assert (refusal(limits, spec) != "") == is_kubernetes_since("v1.36")
    assert found(spec) != []


@pytest.mark.parametrize("spec", REFUSED, ids=str)
def test_object_that_is_refused_does_not_fit(limits: KubeClient, spec: dict[str, Any]) -> None:
    """Proves: CC-80."""
    assert refusal(limits, spec) != ""
    assert found(spec) != []


def document(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "verify.example.com/v1",
        "kind": "Limit",
        "metadata": {"name": "limit"},
        "spec": {"size": "small", **spec},
    }


def found(spec: dict[str, Any]) -> list[str]:
    return [each.message for each in find_mismatches(_SCHEMA, document(spec), complete=True)]


def refusal(api: KubeClient, spec: dict[str, Any]) -> str:
    """Return why the API server refuses an object; a dry run leaves nothing behind."""
    try:
        api.request("POST", _OBJECTS, body=document(spec), query={"dryRun": "All"})
    except ApiError as error:
        return error.message
    return ""
