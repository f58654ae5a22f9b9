"""What changes of schema keywords do to the values of objects, on a real API server.

Each change of the table in `tests/verify/test_verify_schema_changes.py` has a value that the old
schema takes.  With the new schema, the API server refuses it, or keeps another value, exactly where
a rule says so.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.realapi.crd_lineage import established, removed, upgraded
from tests.verify.test_verify_schema_changes import CHANGES, OPEN

GROUP = "keywords.example.com"
REFUSED = {"UP-05", "UP-06", "UP-07"}
CHANGED = {"UP-08", "UP-09"}
PAIR = {"a": "x", "b": "y"}
VALUES: dict[str, Any] = {
    "type": "text",
    "x-kubernetes-int-or-string": 1,
    "number": 1.5,
    "properties": {"a": "x"},
    "additionalProperties": {"b": "x"},
    "values": {"b": "x"},
    OPEN: {"b": "x"},
    "items": [PAIR],
    "required": {},
    "default": None,
    "minimum": 0,
    "minLength": "",
    "minItems": [],
    "minProperties": {},
    "no limit": "",
    "maximum": 10,
    "maxLength": "x" * 10,
    "maxItems": [PAIR] * 9,
    "maxProperties": {str(number): "x" for number in range(10)},
    "exclusiveMinimum": 1,
    "exclusiveMaximum": 9,
    "multipleOf": 3,
    "pattern": "b",
    "format": "no date",
    "format of numbers": 2**40,
    "wide format": 2**40,
    "enum": "b",
    "wider enum": "b",
    "nullable": [None],
    "x-kubernetes-validations": "a",
    "allOf": "",
    "anyOf": "",
    "wider anyOf": "",
    "generated anyOf": "x",
    "oneOf": "",
    "not": "x" * 9,
    "x-kubernetes-embedded-resource": {"a": "x"},
    "x-kubernetes-list-type": [PAIR, PAIR],
    "x-kubernetes-list-map-keys": [PAIR, {"a": "x", "b": "z"}],
}
"""A value by change that only the old schema takes or keeps."""
NAME_FIELDS = ("name", "generateName")
MAX_NAME, MAX_NAME_OF_SERVER = 9, 253
NAMES = [name for name in CHANGES if name != "x-kubernetes-map-type"]
"""The merge of an object, which the other one changes, shows in two applies only."""


def definition(kind: str, is_new: bool) -> JSON:
    """Return a CRD with a field for each change, in its old or its new schema."""
    fields = {field(name): copy.deepcopy(CHANGES[name][is_new]) for name in NAMES}
    # From a field, the API server drops null.
    text = fields[field("nullable")]
    fields[field("nullable")] = {"type": "array", "items": text}
    fields["null"] = {"type": "object", "properties": {"a": text}}
    fields["nulls"] = {"type": "object", "additionalProperties": text}
    fields["required"] = {"type": "object", "properties": {"a": text}, "required": ["a"]}
    properties = {"spec": {"type": "object", "properties": fields}}
    if is_new:
        names = {name: {"type": "string", "maxLength": MAX_NAME} for name in NAME_FIELDS}
        properties["metadata"] = {"type": "object", "properties": names}
    plural = f"{kind.lower()}s"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    kinds = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": kinds, "versions": [version]},
    }


def field(name: str) -> str:
    """Return the name of the field for a change."""
    return f"field{NAMES.index(name)}"


@pytest.fixture(scope="module")
def kinds(api: KubeClient) -> Iterator[tuple[str, str]]:
    """Return the kinds with the old and the new schemas, once both are served."""
    documents = [definition("Former", False), definition("Newer", True)]
    names = [document["metadata"]["name"] for document in documents]
    for document, name in zip(documents, names, strict=True):
        upgraded(api, document)
        eventually(partial(established, api, name))
    for kind in ("Former", "Newer"):
        # Objects can be created some time after the CRD is established.
        eventually(partial(stored, api, kind, "title"))
    yield "Former", "Newer"
    removed(api, names)


def stored(api: KubeClient, kind: str, name: str) -> Any:
    """Return what the API server would store for the value of a change; None for nothing."""
    value = VALUES.get(name, "x")
    spec = {} if name == "default" else {field(name): value}
    return sent(api, kind, spec).get(field(name))


def sent(api: KubeClient, kind: str, spec: JSON, metadata: JSON | None = None) -> JSON:
    """Return the spec that the API server would store."""
    metadata = metadata or {"name": "one"}
    obj = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}
    path = f"/apis/{GROUP}/v1/{kind.lower()}s?dryRun=All"
    found: JSON = api.request("POST", path, body=obj)["spec"]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_values_are_refused_or_changed_as_the_rules_say(
    name: str, api: KubeClient, kinds: tuple[str, str]
) -> None:
    """Proves: UP-05, UP-06, UP-07, UP-08, UP-09."""
    former, newer = kinds
    rules = CHANGES[name][2]
    before = stored(api, former, name)
    if rules & REFUSED:
        with pytest.raises(ApiError) as refused:
            stored(api, newer, name)
        assert refused.value.status == 422
    else:
        after = stored(api, newer, name)
        assert (after != before) == bool(rules & CHANGED)


@pytest.mark.parametrize("name", ["null", "nulls"])
def test_null_is_dropped_from_fields_and_maps(
    name: str, api: KubeClient, kinds: tuple[str, str]
) -> None:
    """Proves: UP-08."""
    former, newer = (sent(api, kind, {name: {"a": None}})[name] for kind in kinds)
    assert (former, newer) == ({"a": None}, {})


def test_null_in_a_required_field_is_refused(api: KubeClient, kinds: tuple[str, str]) -> None:
    """Proves: UP-06."""
    former, newer = kinds
    spec = {"required": {"a": None}}
    assert sent(api, former, spec)["required"] == {"a": None}
    with pytest.raises(ApiError) as refused:
        sent(api, newer, spec)
    assert refused.value.status == 422


@pytest.mark.parametrize("key", NAME_FIELDS)
def test_names_beyond_a_limit_are_refused(
    key: str, api: KubeClient, kinds: tuple[str, str]
) -> None:
    """Proves: UP-06."""
    for kind, limit in zip(kinds, (MAX_NAME_OF_SERVER, MAX_NAME), strict=True):
        # A generated name must not exceed the limit of names, so each object has both.
        names = {"name": "one", key: "x" * limit}
        sent(api, kind, {}, names)
        with pytest.raises(ApiError) as refused:
            sent(api, kind, {}, {**names, key: "x" * (limit + 1)})
        assert refused.value.status == 422
        assert f"metadata.{key}" in str(refused.value)
