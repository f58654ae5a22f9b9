"""Defaults: capsmith and the API server accept the same ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.findings import has_errors
from tests.e2e.releases import is_kubernetes_since
from tests.invalid.cases import judge
from tests.realapi.test_schemas import BASE

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
FORMATS: dict[str, tuple[list[str], list[str]]] = {
    "bsonobjectid": (["507f1f77bcf86cd799439011"], ["507f1f77bcf86cd79943901", "xyz"]),
    "byte": (["ZXhhbXBsZQ==", "YWJj"], ["ZXhhbXBsZQ=", "a b", "", "_-8="]),
    "cidr": (
        ["10.0.0.0/16", "::/0", "010.0.0.1/8", "::ffff:010.0.0.1/96"],
        ["10.0.0.0/33", "10.0.0.0", "a/8", "::/129"],
    ),
    "creditcard": (["4111 1111 1111 1111"], ["4111 1111 1111 1112", "1"]),
    "date": (["2030-01-31", "0000-02-29"], ["2030-02-30", "2030-1-1", "30-01-01", "2030-01-01T"]),
    "date-time": (
        ["2030-01-01T00:00:00Z", "2030-01-01t00:00:00.5+01:00"],
        ["2030-01-01", "2030-01-01T24:00:00Z", "2030-01-01T00:00Z", "2030-01-01T00:00:00"],
    ),
    "duration": (
        ["10m", "1h30m", "3 days", "0", "1.5h", "-2s", "2 weeks"],
        ["10", "soon", "1y", "", "1hh"],
    ),
    "email": (
        ["someone@example.com", "A B <a@example.com>", '"a b"@c', "ä@b", "a@ b"],
        [
            "someone",
            "@example.com",
            "a@",
            "a b@c",
            ".a@b",
            "a..b@c",
            "a@b.",
            "a@b,c@d",
            'a@"',
            "a@(",
        ],
    ),
    "hexcolor": (["#ff0000", "abc"], ["#ff00", "red"]),
    "hostname": (
        ["host.example.com", "a", "ä.example"],
        ["a_b.example", "-a.example", "a." + "b" * 64],
    ),
    "ipv4": (["192.0.2.10", "010.0.0.1"], ["192.0.2", "192.0.2.256", "::1", "a.b.c.d"]),
    "ipv6": (
        ["2001:db8::10", "::", "::ffff:1.2.3.4"],
        ["2001:db8::10::", "1.2.3.4", "fe80::1%eth0"],
    ),
    "isbn": (["0-321-75104-3", "978-0321751041"], ["0-321-75104-4"]),
    "isbn10": (["0321751043", "080442957X"], ["0321751044", "978-0321751041"]),
    "isbn13": (["978-0321751041"], ["978-0321751042", "0321751043"]),
    "mac": (
        [
            "02:00:00:00:00:01",
            "020000000001",
            "02-00-00-00-00-01",
            "0200.0000.0001",
            "02:00:00:00:00:01:02:03",
        ],
        ["02:00:00:00:00", "0g:00:00:00:00:01", "02:00:00-00:00:01"],
    ),
    "password": (["anything", ""], []),
    "rgbcolor": (["rgb(1, 20,255)"], ["rgb(1,2)", "rgb(256,0,0)"]),
    "ssn": (["123-45-6789", "123 45 6789"], ["123456789", "123-45-678"]),
    "uri": (
        ["https://example.com", "/path", "mailto:a@b", "*", "http://[::1]:80/", "http://a:b@c/?%"],
        ["example.com", "", "a b", "/%", "http:/%zz", "http://a:x/", "http://a^/", "http://a b/"],
    ),
    "uuid": (["9c2a4f5e-8d1b-4b7a-9a54-0d9a9d1c2f11"], ["9c2a4f5e-8d1b-4b7a-9a54", ""]),
    "uuid3": (["9c2a4f5e-8d1b-3b7a-9a54-0d9a9d1c2f11"], ["9c2a4f5e-8d1b-4b7a-9a54-0d9a9d1c2f11"]),
    "uuid4": (["9C2A4F5E8D1B4B7A9A540D9A9D1C2F11"], ["9c2a4f5e-8d1b-3b7a-9a54-0d9a9d1c2f11"]),
    "uuid5": (["9c2a4f5e-8d1b-5b7a-9a54-0d9a9d1c2f11"], ["9c2a4f5e-8d1b-4b7a-9a54-0d9a9d1c2f11"]),
    "quantity": (["anything"], []),
}
PATTERNS = [
    (r"^\d+$", ["1"], ["٣"]),
    (r"^\w+$", ["a_1"], ["ä"]),
    (r"^[^\d]$", ["٣"], ["1"]),
    (r"^\s$", [" "], ["\u00a0"]),
    (r"\bä", ["xä"], ["ä"]),
    (r"^[a&&b]+$", ["a&b"], ["c"]),
    (r"^[[]$", ["["], ["]"]),
    (r"^\Qa.b\E$", ["a.b"], ["axb"]),
    (r"^[[:alpha:]-]+$", ["a-b"], ["1"]),
    (r"(?i)^straße$", ["STRAßE"], ["strasse"]),
    (r"^a.b$", ["a/b"], ["a\nb"]),
    (r"^{\w+}$", ["{a}"], ["{ä}", "a"]),
    (r"^\<[+--]\101\>$", ["<,A>"], ["<*A>"]),
    (r"^(\p{Greek}{2}){150}$", ["Ω" * 300], []),
]
LIST_MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string", "required": True}, "size": {"type": "integer"}},
    },
}
SCHEMAS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "string", "enum": ["a", "b"]}, ["a"], ["c", "A"]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "äöü"], ["a", "abcd"]),
    ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4, "1"]),
    ({"type": "integer", "format": "int32"}, [2147483647], []),
    ({"type": "integer", "multipleOf": 3}, [6], [7]),
    ({"type": "number", "multipleOf": 0.1}, [0.3, 0.2, 1.5], [0.25]),
    ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, [0.1], [0, -1]),
    ({"type": "boolean"}, [True], ["true", 1]),
    (
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        [["a", "b"], []],
        [["a", 1]],
    ),
    (LIST_MAP, [[{"name": "a"}, {"name": "b"}]], [[{"size": 1}]]),
    (
        {"type": "array", "maxItems": 1, "items": {"type": "string", "format": "ipv4"}},
        [["1.2.3.4"]],
        [["1.2.3"], ["1.2.3.4", "1.2.3.5"]],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "string", "pattern": "^a"}},
        [{"x": "a"}, {}],
        [{"x": "b"}, {"x": 1}],
    ),
    (
        {"type": "object", "properties": {"cidr": {"type": "string", "format": "cidr"}}},
        [{"cidr": "10.0.0.0/8"}, {}],
        [{"cidr": "10.0.0.0/64"}, {"cdr": "10.0.0.0/8"}],
    ),
    ({"x-kubernetes-preserve-unknown-fields": True}, [{"a": 1}, [{"a": 1}], "a", 1], []),
    (
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}},
        },
        [{"c": 1}, {"a": {"b": "c"}, "d": {"e": 1}}],
        [{"a": {"c": 1}}],
    ),
    ({"x-kubernetes-int-or-string": True}, [1, "80%"], []),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "self.size() > 2"}]},
        ["abc"],
        ["ab"],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "number"}},
            "x-kubernetes-validations": [{"rule": "!has(self.a) || self.a < 3 && self.b > 0.5"}],
        },
        [{}, {"a": 1, "b": 1}, {"a": 2, "b": 0.75}],
        [{"a": 3, "b": 1}, {"a": 1, "b": 0}, {"a": 1, "b": 0.5}],
    ),
    (
        {
            "type": "string",
            "format": "date-time",
            "x-kubernetes-validations": [{"rule": "self > timestamp('2020-01-01T00:00:00Z')"}],
        },
        ["2030-01-01T00:00:00Z"],
        [],
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf && isIP(self)"}]},
        ["10.0.0.1"],
        [],
    ),
    (
        {
            "type": "array",
            "items": {"type": "integer"},
            "maxItems": 3,
            "x-kubernetes-validations": [{"rule": "self.all(item, item > 1)"}],
        },
        [[2, 3], []],
        [[1]],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}},
        [{"a": {}}],
        [{"a": {"b": 1}}],
    ),
]
# The API server accepts the CRD, and refuses or misreads the objects that get the default.
STRICTER: list[tuple[dict[str, Any], Any]] = [
    ({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}, ["a", "a"]),
    (LIST_MAP, [{"name": "a"}, {"name": "a"}]),
    ({"x-kubernetes-int-or-string": True}, True),
    ({"x-kubernetes-int-or-string": True}, 1.5),
]

NUMBERS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "integer", "format": "int32"}, 2147483648),
    ({"type": "number", "format": "float"}, 3.5e38),
]


def cases(good: bool) -> list[Any]:
    found = []
    for name, texts in FORMATS.items():
        found += [({"type": "string", "format": name}, text) for text in texts[0 if good else 1]]
    for pattern, fitting, others in PATTERNS:
        found += [
            ({"type": "string", "pattern": pattern}, text) for text in (fitting if good else others)
        ]
    for schema, fitting, others in SCHEMAS:
        found += [(schema, value) for value in (fitting if good else others)]
    return [pytest.param(*case, id=json.dumps(case)[:90]) for case in found]


@pytest.mark.parametrize(("schema", "value"), cases(good=True))
def test_default_is_accepted(api: KubeClient, schema: dict[str, Any], value: Any) -> None:
    assert refusal(api, schema, value) == ""
    assert not is_refused_here(schema, value)


@pytest.mark.parametrize(("schema", "value"), cases(good=False))
def test_default_is_refused(api: KubeClient, schema: dict[str, Any], value: Any) -> None:
    assert refusal(api, schema, value) != ""
    assert is_refused_here(schema, value)


@pytest.mark.parametrize(("schema", "value"), STRICTER)
def test_default_is_refused_here_only(api: KubeClient, schema: dict[str, Any], value: Any) -> None:
    assert refusal(api, schema, value) == ""
    assert is_refused_here(schema, value)


@pytest.mark.parametrize(("schema", "value"), NUMBERS)
def test_number_beyond_its_format_is_refused_since_v1_36(
    api: KubeClient, schema: dict[str, Any], value: Any
) -> None:
    assert (refusal(api, schema, value) != "") == is_kubernetes_since("v1.36")
    assert is_refused_here(schema, value)


def is_refused_here(schema: dict[str, Any], value: Any) -> bool:
    field = {**schema, "default": value}
    return has_errors(judge(BASE.replace('"FIELD"', json.dumps(field))))


def refusal(api: KubeClient, schema: dict[str, Any], value: Any) -> str:
    """Return why the API server refuses a CRD with a default."""
    plain = json.loads(json.dumps(schema))
    if "items" in plain and "properties" in plain["items"]:
        del plain["items"]["properties"]["name"]["required"]
        plain["items"]["required"] = ["name"]
    properties = {"spec": {"type": "object", "properties": {"a": {**plain, "default": value}}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    names = {"plural": "samples", "singular": "sample", "kind": "Sample", "listKind": "SampleList"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    try:
        api.request("POST", CRD, body=body)
    except ApiError as error:
        return error.message
    return ""
