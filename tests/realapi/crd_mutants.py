"""CRDs with seeded changes, good and bad ones, of everything that the API server validates."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

Document = dict[str, Any]
Change = Callable[[Random, Document], str]
"""Changes a CRD in place, and returns what it changed."""

_RULE = {"rule": "self.size() > 0"}
_TEXT: Document = {"type": "string"}
_ITEM: Document = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "port": {"type": "integer", "default": 80},
        "keys": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
    },
}
_SPEC: Document = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "pattern": "^[a-z]+$", "default": "abc", "maxLength": 9},
        "count": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "default": 3},
        "share": {"type": "number", "default": 0.5},
        "flag": {"type": "boolean", "default": True},
        "either": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
        },
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": _TEXT, "default": {"a": "b"}},
        "items": {
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": _ITEM,
        },
        "object": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "limited": {
            "type": "object",
            "properties": {"a": _TEXT, "b": _TEXT},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "x-kubernetes-map-type": "atomic",
            "x-kubernetes-validations": [{"rule": "has(self.a) || has(self.b)", "message": "no"}],
            "default": {"a": "x"},
        },
    },
}


def make_base() -> Document:
    """Return a valid CRD with two versions and a field of each sort."""

    def version(name: str, stored: bool) -> Document:
        root: Document = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}}
        newer = {"newer": _TEXT} if stored else {}
        root |= {"spec": _SPEC, "status": {"type": "object", "properties": {"n": _TEXT, **newer}}}
        scale = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.n"}
        return {
            "name": name,
            "served": True,
            "storage": stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": root}},
            "subresources": {"status": {}, "scale": scale},
            "additionalPrinterColumns": [{"name": "N", "type": "string", "jsonPath": ".spec.text"}],
            "selectableFields": [{"jsonPath": ".spec.text"}] if stored else [],
        }

    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    document: Document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.mutants.example.com", "labels": {"a": "b"}},
        "spec": {
            "group": "mutants.example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version("v1alpha1", False), version("v1", True)],
        },
    }
    # No part is shared, so that a change is in one version.
    copied: Document = json.loads(json.dumps(document))
    return copied


class Mutant(NamedTuple):
    """A changed CRD."""

    text: str
    """What was changed."""
    document: Document


def make_mutants(count: int, seed: int = 0) -> Iterator[Mutant]:
    """Yield ``count`` changed CRDs, the same ones for the same seed."""
    random = Random(seed)
    for number in range(count):
        document = make_base()
        change = _CHANGES[number % len(_CHANGES)]
        # Most have one change, so that a verdict has one reason.
        texts = [change(random, document) for _ in range(random.choice((1, 1, 1, 2)))]
        yield Mutant(f"{number}: {', '.join(texts)}", document)


def _schemas(schema: Any, path: str) -> Iterator[tuple[str, Document]]:
    if not isinstance(schema, dict):
        return
    yield path, schema
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, dict) else ():
        yield from _schemas(part, f"{path}.{name}")
    for key in ("items", "additionalProperties", "not"):
        yield from _schemas(schema.get(key, None), f"{path}.{key}")
    for key in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(key)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _schemas(part, f"{path}.{key}[{index}]")


def _version(random: Random, crd: Document) -> Document:
    found: Document = random.choice(crd["spec"]["versions"])
    return found


def _schema(random: Random, crd: Document) -> tuple[str, Document]:
    version = _version(random, crd)
    root = version.get("schema", {}).get("openAPIV3Schema") or {}
    return random.choice(list(_schemas(root, str(version.get("name")))))


def _remove_keyword(random: Random, crd: Document) -> str:
    path, schema = _schema(random, crd)
    if not schema:
        return f"{path} is empty"
    key = random.choice(sorted(schema))
    del schema[key]
    return f"{path} without {key}"


def _remove_type(random: Random, crd: Document) -> str:
    path, schema = _schema(random, crd)
    schema.pop("type", None)
    return f"{path} without type"


_TYPES = (
    "string",
    "integer",
    "number",
    "boolean",
    "array",
    "object",
    "null",
    "int",
    "",
    5,
    ["string"],
)


def _set_type(random: Random, crd: Document) -> str:
    path, schema = _schema(random, crd)
    schema["type"] = random.choice(_TYPES)
    return f"{path} of type {schema['type']!r}"


_VALUES: tuple[Any, ...] = (
    *("", "abc", "ABC", "x" * 12, 0, 3, 10, 1.5, True, None, [], ["a"], ["a", "a"], [1], {}),
    *({"a": "x"}, {"a": 1}, {"b": "y", "a": "x"}, {"c": "d"}, {"a": {"b": 1}}, [{"name": "n"}]),
    *(
        [{"name": "n"}, {"name": "n"}],
        [{"port": 1}],
        {"kind": "A"},
        {"apiVersion": "v1", "kind": "A"},
    ),
    {"apiVersion": "v1", "kind": "A", "more": 1},
)


def _set_default(random: Random, crd: Document) -> str:
    path, schema = _schema(random, crd)
    schema["default"] = copy.deepcopy(random.choice(_VALUES))
    return f"{path} with default {schema['default']!r}"


_KEYWORDS: dict[str, tuple[Any, ...]] = {
    "additionalProperties": (True, False, {}, {"type": "string"}, {"default": "a"}, "no"),
    "additionalItems": (True, {"type": "string"}),
    "allOf": (
        [{"minLength": 1}],
        [{"type": "string"}],
        [{"properties": {"z": {}}}],
        [{"default": 1}],
    ),
    "anyOf": ([{"type": "integer"}, {"type": "string"}], [{"minimum": 1}, {"maximum": 0}]),
    "oneOf": ([{"required": ["a"]}], [{"properties": {"metadata": {}}}], [{"pattern": "("}]),
    "not": ({"maxLength": 0}, {"nullable": True}, {"additionalProperties": False}, {"title": "a"}),
    "definitions": ({}, {"a": {"type": "string"}}),
    "dependencies": ({"a": ["b"]},),
    "description": ("a", "", 3),
    "enum": (["a"], [1, 2], [], "a", [None]),
    "exclusiveMinimum": (True, 3),
    "format": ("date", "int32", "unknown", 3),
    "id": ("a", ""),
    "$ref": ("#/a",),
    "$schema": ("http://json-schema.org/draft-07/schema#",),
    "items": ({"type": "string"}, {}, [{"type": "string"}], {"type": "object", "nullable": True}),
    "maxLength": (1, -1, "3", 1.5),
    "maximum": (1, 1.5, "3"),
    "minItems": (1, -1),
    "maxProperties": (1,),
    "multipleOf": (2, 0.5),
    "nullable": (True, False, "yes"),
    "pattern": ("^a", "(", "a++", "(?=a)", "\\d+", "[[:alpha:]]"),
    "patternProperties": ({"a": {"type": "string"}}, {}),
    "properties": ({}, {"a": {"type": "string"}}, {"a": {}}, {"metadata": {"type": "object"}}),
    "required": (["a"], [], ["undeclared"], "a"),
    "title": ("a",),
    "uniqueItems": (True, False),
    "x-kubernetes-embedded-resource": (True, False),
    "x-kubernetes-int-or-string": (True, False),
    "x-kubernetes-list-map-keys": (["name"], ["port"], ["name", "name"], ["keys"], ["a"], []),
    "x-kubernetes-list-type": ("atomic", "set", "map", "other"),
    "x-kubernetes-map-type": ("atomic", "granular", "other"),
    "x-kubernetes-preserve-unknown-fields": (True, False),
    "unknownKeyword": (1,),
}


def _set_keyword(random: Random, crd: Document) -> str:
    path, schema = _schema(random, crd)
    key = random.choice(sorted(_KEYWORDS))
    schema[key] = copy.deepcopy(random.choice(_KEYWORDS[key]))
    return f"{path} with {key} {schema[key]!r}"


_RULES: tuple[Document, ...] = (
    *({"rule": text} for text in ("true", "", " ", "self ==", "self == self", "self == oldSelf")),
    *({"rule": text} for text in ("self.undeclared == 1", "1", "has(self.a)", "self.size() < 3")),
    {"rule": "self.a == 'x'", "message": "a"},
    {"rule": "true", "message": " "},
    {"rule": "true\n&& true"},
    {"rule": "true\n&& true", "message": "a"},
    {"rule": "true", "reason": "FieldValueInvalid"},
    {"rule": "true", "reason": "Other"},
    {"rule": "true", "fieldPath": ".a"},
    {"rule": "true", "messageExpression": "'a'"},
    {"rule": "true", "messageExpression": "1"},
    {"rule": "true", "optionalOldSelf": True},
    {"rule": "oldSelf.hasValue()", "optionalOldSelf": True},
    {"rule": 3},
)


def _set_rule(random: Random, crd: Document) -> str:
    path, schema = _schema(random, crd)
    rule = copy.deepcopy(random.choice(_RULES))
    schema["x-kubernetes-validations"] = [rule]
    return f"{path} with rule {rule}"


_OF_VERSIONS: dict[str, tuple[Any, ...]] = {
    "name": ("v1", "v2", "V2", "", "1", "a" * 64, 3),
    "served": (True, False, "true"),
    "storage": (True, False),
    "deprecated": (True,),
    "deprecationWarning": ("gone", "", "a\nb", "x" * 300),
    "schema": ({}, None, {"openAPIV3Schema": {"type": "object"}}, {"openAPIV3Schema": None}),
    "selectableFields": (
        *([{"jsonPath": text}] for text in (".spec.count", ".spec.share", "spec.text", ".spec.no")),
        *([{"jsonPath": text}] for text in ("", ".metadata.name", ".spec.items", ".spec")),
        [{"jsonPath": ".spec.text"}, {"jsonPath": ".spec.text"}],
    ),
    "subresources": (
        *({}, None, {"status": {}}, {"scale": {}}, {"status": True}),
        *({"scale": {"specReplicasPath": a, "statusReplicasPath": b}} for a, b in (
            (".spec.count", ".status.n"), ("spec.count", ".status.n"), (".spec.a", ".spec.b"))),
        {"scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.b",
                   "labelSelectorPath": ".meta.c"}},
    ),
    "additionalPrinterColumns": (
        [],
        *([{"name": "A", "type": kind, "jsonPath": ".a"}] for kind in ("date", "Date", "")),
        *([{"name": "A", "type": "string", "jsonPath": path}] for path in ("", "a", ".", ".a.b")),
        *([{"name": "A", "type": "string", "format": f, "jsonPath": ".a"}] for f in ("byte", "x")),
        [{"type": "string", "jsonPath": ".a"}],
        [{"name": "A", "type": "string", "jsonPath": ".a", "priority": "1"}],
    ),
}  # fmt: skip


def _set_of_version(random: Random, crd: Document) -> str:
    version = _version(random, crd)
    key = random.choice(sorted(_OF_VERSIONS))
    version[key] = copy.deepcopy(random.choice(_OF_VERSIONS[key]))
    return f"a version with {key} {version[key]!r}"


def _change_versions(random: Random, crd: Document) -> str:
    versions = crd["spec"]["versions"]
    text = random.choice(("one less", "none", "twice", "no list"))
    if text == "one less":
        del versions[random.randrange(len(versions))]
    elif text == "twice":
        versions.append({**copy.deepcopy(versions[0]), "storage": False})
    else:
        crd["spec"]["versions"] = [] if text == "none" else {}
        # Further changes need a version.
        crd["spec"]["versions"] = crd["spec"]["versions"] or [{"name": "v1"}]
    return f"versions: {text}"


_NAMES: dict[str, tuple[Any, ...]] = {
    "plural": ("others", "Things", "", None),
    "singular": ("", "Thing", "thing", "a.b"),
    "kind": ("Thing", "thing", "0Thing", "A_b", "", "ThingList"),
    "listKind": ("Thing", "", "things list", "Things"),
    "shortNames": (["t"], ["T"], [], "t", [""]),
    "categories": (["cluster-api"], ["a/b"], [3]),
}


def _set_name(random: Random, crd: Document) -> str:
    key = random.choice(sorted(_NAMES))
    crd["spec"]["names"][key] = copy.deepcopy(random.choice(_NAMES[key]))
    return f"{key} {crd['spec']['names'][key]!r}"


_OF_SPEC: dict[str, tuple[Any, ...]] = {
    "group": ("example", "Example.com", "", "things.k8s.io", "a.x-k8s.io", "a_b.com"),
    "scope": ("Cluster", "Namespaced", "Global", "", None),
    "preserveUnknownFields": (True, False),
}


def _set_of_spec(random: Random, crd: Document) -> str:
    key = random.choice(sorted(_OF_SPEC))
    value = crd["spec"][key] = random.choice(_OF_SPEC[key])
    if key == "group":
        crd["metadata"]["name"] = f"things.{value}"
        if random.random() < 0.3:
            crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    return f"{key} {value!r}"


_METADATA: dict[str, tuple[Any, ...]] = {
    "name": ("things", "others.mutants.example.com", ""),
    "labels": ({"a b": "c"}, {"a": "b c"}, {"a/b/c": ""}, {"a": 1}, {"example.com/a": ""}, None),
    "annotations": ({"A/b": "x"}, {"a b": "x"}, {"a": "b c\n"}, {"a": True}),
    "namespace": ("default", ""),
    "finalizers": ([], ["example.com/a"]),
}


def _set_metadata(random: Random, crd: Document) -> str:
    key = random.choice(sorted(_METADATA))
    crd["metadata"][key] = copy.deepcopy(random.choice(_METADATA[key]))
    return f"metadata.{key} {crd['metadata'][key]!r}"


_SERVICE = {"namespace": "a", "name": "b"}
_CLIENTS: tuple[Any, ...] = (
    *(None, {}, {"service": _SERVICE}, {"service": {"name": "b"}}, {"url": "https://a/b"}),
    *({"url": url} for url in ("http://a", "https://a?b=c", "https://u@a", "a", "https:///b")),
    *(
        {"service": {**_SERVICE, "path": path}}
        for path in ("/convert", "convert", "/a//b", "/A", "/")
    ),
    *({"service": {**_SERVICE, "port": port}} for port in (443, 0, 70000, "443")),
    *(
        {"service": _SERVICE, "caBundle": text}
        for text in ("Cg==", "no base64", "LS0tLS1CRUdJTg==")
    ),
    {"service": _SERVICE, "url": "https://a"},
)
_REVIEWS: tuple[Any, ...] = (
    ["v1"],
    ["v1beta1", "v1"],
    [],
    None,
    ["v2"],
    ["v1", "v1"],
    ["V1", "v1"],
)


def _set_conversion(random: Random, crd: Document) -> str:
    strategy = random.choice(("None", "Webhook", "Webhook", "Webhook", "webhook", ""))
    conversion: Document = {"strategy": strategy}
    if random.random() < 0.8:
        reviews = random.choice(_REVIEWS[:1] * 6 + _REVIEWS)
        client = random.choice(_CLIENTS)
        conversion["webhook"] = {"clientConfig": client, "conversionReviewVersions": reviews}
    crd["spec"]["conversion"] = copy.deepcopy(conversion)
    return f"conversion {conversion}"


_OF_META: tuple[Document, ...] = (
    *({"type": "object", "properties": {"name": part}} for part in (_TEXT, {"type": "integer"})),
    *({"type": "object", key: value} for key, value in (
        ("description", "a"), ("nullable", True), ("default", {}), ("minProperties", 1),
        ("properties", {}), ("properties", {"labels": {}}), ("required", ["name"]))),
    {"type": "string"},
    {},
)  # fmt: skip


def _set_meta(random: Random, crd: Document) -> str:
    version = _version(random, crd)
    root = version.get("schema", {}).get("openAPIV3Schema") or {}
    name = random.choice(("metadata", "metadata", "kind", "apiVersion"))
    part = copy.deepcopy(random.choice(_OF_META))
    root.setdefault("properties", {})[name] = part
    return f"schema of {name} {part}"


def _set_api_version(random: Random, crd: Document) -> str:
    value = random.choice(("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", "v1"))
    crd["apiVersion"] = value
    return f"apiVersion {value}"


_CHANGES: tuple[Change, ...] = (
    *(_remove_keyword, _set_keyword, _set_default, _set_type, _remove_type, _set_keyword),
    *(_set_of_version, _set_default, _set_conversion, _set_keyword, _set_rule, _set_name),
    *(_set_keyword, _set_of_version, _set_meta, _set_default, _set_metadata, _change_versions),
    *(_set_of_spec, _set_rule, _set_keyword),
)
