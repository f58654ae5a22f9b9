"""What upgrades do to stored objects, keyword by keyword and version by version."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from capsmith import resources
from capsmith.contract.load import load_keywords, load_upgrade_rules
from capsmith.judge.release.schema_changes import find_schema_changes
from tests.verify.places import run
from tests.verify.releases import crd, violations, write

KEYWORDS = load_keywords(resources.schemas())
LABEL = {"cluster.x-k8s.io/v1beta2": "v1alpha1_v1"}
OPEN = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
LIST: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": TEXT, "b": TEXT},
    },
}
MAP = {"type": "object", "additionalProperties": TEXT}
OBJECT = {"type": "object", "properties": {"a": TEXT}}


def _keyed(*keys: str) -> dict[str, Any]:
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


BOTH = {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], set[str], set[str]]] = {
    "type": (TEXT, NUMBER, {"UP-07"}, {"UP-07"}),
    "x-kubernetes-int-or-string": (BOTH, TEXT, {"UP-07"}, set()),
    "number": ({"type": "number"}, NUMBER, {"UP-07"}, set()),
    "properties": (OBJECT, {"type": "object"}, {"UP-08"}, set()),
    "additionalProperties": (MAP, OBJECT, {"UP-08"}, set()),
    "values": (MAP, {**MAP, "additionalProperties": NUMBER}, {"UP-07"}, {"UP-07"}),
    OPEN: ({**OBJECT, OPEN: True}, OBJECT, {"UP-08"}, set()),
    "items": (LIST, {"type": "array", "items": OBJECT}, {"UP-08"}, {"UP-05"}),
    "required": (OBJECT, {**OBJECT, "required": ["a"]}, {"UP-05"}, set()),
    "default": (TEXT, {**TEXT, "default": "a"}, {"UP-09"}, {"UP-09"}),
    "minimum": (NUMBER, {**NUMBER, "minimum": 1}, {"UP-06"}, set()),
    "minLength": (TEXT, {**TEXT, "minLength": 1}, {"UP-06"}, set()),
    "minItems": (LIST, {**LIST, "minItems": 1}, {"UP-06"}, set()),
    "minProperties": (MAP, {**MAP, "minProperties": 1}, {"UP-06"}, set()),
    "no limit": (TEXT, {**TEXT, "minLength": 0}, set(), set()),
    "maximum": (NUMBER, {**NUMBER, "maximum": 9}, {"UP-06"}, set()),
    "maxLength": (TEXT, {**TEXT, "maxLength": 9}, {"UP-06"}, set()),
    "maxItems": ({**LIST, "maxItems": 9}, {**LIST, "maxItems": 8}, {"UP-06"}, set()),
    "maxProperties": (MAP, {**MAP, "maxProperties": 9}, {"UP-06"}, set()),
    "exclusiveMinimum": (
        {**NUMBER, "minimum": 1},
        {**NUMBER, "minimum": 1, "exclusiveMinimum": True},
        {"UP-06"},
        set(),
    ),
    "exclusiveMaximum": (
        {**NUMBER, "maximum": 9},
        {**NUMBER, "maximum": 9, "exclusiveMaximum": True},
        {"UP-06"},
        set(),
    ),
    "multipleOf": ({**NUMBER, "multipleOf": 3}, {**NUMBER, "multipleOf": 6}, {"UP-06"}, set()),
    "pattern": (TEXT, {**TEXT, "pattern": "^a"}, {"UP-06"}, set()),
    "format": (TEXT, {**TEXT, "format": "date-time"}, {"UP-06"}, set()),
    "format of numbers": (NUMBER, {**NUMBER, "format": "int32"}, {"UP-06"}, set()),
    "wide format": (NUMBER, {**NUMBER, "format": "int64"}, set(), set()),
    "enum": (TEXT, {**TEXT, "enum": ["a"]}, {"UP-06"}, set()),
    "wider enum": ({**TEXT, "enum": ["a", "b"]}, {**TEXT, "enum": ["a"]}, {"UP-06"}, set()),
    "nullable": ({**TEXT, "nullable": True}, TEXT, {"UP-06"}, set()),
    "x-kubernetes-validations": (
        TEXT,
        {**TEXT, "x-kubernetes-validations": [{"rule": "self != 'a'"}]},
        {"UP-06"},
        set(),
    ),
    "allOf": (TEXT, {**TEXT, "allOf": [{"minLength": 1}]}, {"UP-06"}, set()),
    "anyOf": (TEXT, {**TEXT, "anyOf": [{"minLength": 1}]}, {"UP-06"}, set()),
    "wider anyOf": (
        {**TEXT, "anyOf": [{"minLength": 9}, {"maxLength": 1}]},
        {**TEXT, "anyOf": [{"minLength": 9}]},
        {"UP-06"},
        set(),
    ),
    "generated anyOf": ({INT_OR_STRING: True}, BOTH, set(), set()),
    "oneOf": (TEXT, {**TEXT, "oneOf": [{"minLength": 1}]}, {"UP-06"}, set()),
    "not": (TEXT, {**TEXT, "not": {"minLength": 9}}, {"UP-06"}, set()),
    "x-kubernetes-embedded-resource": (
        {"type": "object", OPEN: True},
        {"type": "object", OPEN: True, "x-kubernetes-embedded-resource": True},
        {"UP-06"},
        set(),
    ),
    "x-kubernetes-list-type": (
        LIST,
        {**LIST, **_keyed("a")},
        {"UP-06"},
        {"UP-20"},
    ),
    "x-kubernetes-list-map-keys": (
        {**LIST, **_keyed("a", "b")},
        {**LIST, **_keyed("a")},
        {"UP-06"},
        {"UP-20"},
    ),
    "x-kubernetes-map-type": (
        OBJECT,
        {**OBJECT, "x-kubernetes-map-type": "atomic"},
        {"UP-20"},
        {"UP-20"},
    ),
    "description": (TEXT, {**TEXT, "description": "a"}, set(), set()),
    "title": (TEXT, {**TEXT, "title": "a"}, set(), set()),
    "example": (TEXT, {**TEXT, "example": "a"}, set(), set()),
    "externalDocs": (TEXT, {**TEXT, "externalDocs": {"url": "https://a.b"}}, set(), set()),
}
"""An old and a new schema, the rules that the change breaks, and those of its reverse."""
REFUSED = {
    *("uniqueItems", "id", "$schema", "$ref", "definitions", "dependencies"),
    *("patternProperties", "additionalItems"),
}
"""Keywords that the API server refuses or does not read."""


def _below(place: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has a field with ``schema`` at a place."""
    wrapped = {
        "field": schema,
        "object": {"type": "object", "properties": {"inner": schema}},
        "items": {"type": "array", "items": schema},
        "map": {"type": "object", "additionalProperties": schema},
    }[place]
    spec = {"type": "object", "properties": {"part": wrapped}}
    return {"type": "object", "properties": {"spec": spec}}


@pytest.mark.parametrize("place", ["field", "object", "items", "map"])
@pytest.mark.parametrize("name", CHANGES)
def test_each_change_breaks_its_rules(name: str, place: str) -> None:
    """Proves: UP-05, UP-06, UP-07, UP-08, UP-09, UP-20."""
    old, new, forward, backward = CHANGES[name]
    if name == "nullable" and place != "items":
        # Null is dropped from fields and maps, and refused in lists only.
        forward = {"UP-08"}
    schemas = _below(place, old), _below(place, new)
    for before, after, expected in (
        (*schemas, forward),
        (*reversed(schemas), backward),
        (schemas[0], schemas[0], set()),
    ):
        assert {each.rule for each in find_schema_changes(before, after, KEYWORDS)} == expected


def test_each_keyword_has_a_case_and_known_rules() -> None:
    assert set(KEYWORDS) == (set(CHANGES) & set(KEYWORDS)) | REFUSED
    rules = {name for each in KEYWORDS.values() for name in (each.narrowed, each.widened) if name}
    assert rules <= set(load_upgrade_rules(resources.schemas()))


def _changed(before: dict[str, Any], after: dict[str, Any], required: list[str]) -> set[str]:
    spec = {"type": "object", "required": required, "properties": {"a": before}}
    old: dict[str, Any] = {"type": "object", "properties": {"spec": spec}}
    new = copy.deepcopy(old)
    new["properties"]["spec"]["properties"]["a"] = after
    return {each.rule for each in find_schema_changes(old, new, KEYWORDS)}


def test_a_type_that_each_object_has() -> None:
    """If the types overlap, it depends on the value.

    Proves: UP-18.
    """
    assert _changed({"type": "number"}, NUMBER, ["a"]) == {"UP-07"}
    assert _changed({INT_OR_STRING: True}, TEXT, ["a"]) == {"UP-07"}
    assert _changed({**NUMBER, "default": 1}, {**TEXT, "default": "1"}, []) == {"UP-18"}
    assert _changed(NUMBER, TEXT, ["a"]) == {"UP-18"}
    assert _changed(NUMBER, TEXT, []) == {"UP-07"}


def test_null_becomes_a_new_default() -> None:
    old = {**TEXT, "nullable": True, "default": "a"}
    assert _changed(old, {**TEXT, "default": "a"}, []) == set()


def test_a_required_field_accepts_null_no_longer() -> None:
    assert _changed({**TEXT, "nullable": True}, TEXT, ["a"]) == {"UP-06"}
    assert _changed({**TEXT, "nullable": True}, TEXT, []) == {"UP-08"}


def test_a_default_that_is_gone_leaves_a_required_field_without_a_value() -> None:
    assert "UP-05" in _changed({**TEXT, "default": "a"}, TEXT, ["a"])


ANY = {"type": "object", OPEN: True}
EMBEDDED = {**ANY, "x-kubernetes-embedded-resource": True}
RULES = "x-kubernetes-validations"
UNDECLARED: dict[str, tuple[dict[str, Any], dict[str, Any], set[str]]] = {
    "a field of an open object": (ANY, {**OBJECT, OPEN: True}, {"UP-07"}),
    "a field of any value": ({OPEN: True}, {**OBJECT, OPEN: True}, {"UP-07"}),
    "an open field": (ANY, {**ANY, "properties": {"a": {OPEN: True}}}, set()),
    "values of an open object": (ANY, MAP, {"UP-07"}),
    "values of a map": ({"type": "object", "additionalProperties": True}, MAP, {"UP-07"}),
    "a field of a map": (MAP, {"type": "object", "properties": {"a": NUMBER}}, {"UP-07", "UP-08"}),
    "a default": (ANY, {**ANY, "properties": {"a": {OPEN: True, "default": 1}}}, set()),
    "a field of an embedded object": (
        EMBEDDED,
        {**EMBEDDED, "properties": {"kind": TEXT, "data": TEXT}},
        {"UP-07"},
    ),
    "no embedded object": (EMBEDDED, ANY, set()),
    "no embedded object, closed": (EMBEDDED, {"type": "object"}, {"UP-08"}),
}
"""What a schema declares that kept any value, and the rules that this breaks."""


@pytest.mark.parametrize("name", UNDECLARED)
def test_undeclared_values_have_new_limits(name: str) -> None:
    """Proves: UP-07, UP-08."""
    old, new, expected = UNDECLARED[name]
    assert _changed(old, new, []) == expected


def _ranged(**limits: Any) -> dict[str, Any]:
    return {**NUMBER, **limits}


CHOICE = {**TEXT, "enum": ["a", "bb"]}
EITHER = [{"minLength": 9}, {"maxLength": 1}]
IMPLIED: dict[str, tuple[dict[str, Any], dict[str, Any], set[str]]] = {
    "uuid": ({**TEXT, "format": "uuid4"}, {**TEXT, "format": "uuid"}, set()),
    "uuid reversed": ({**TEXT, "format": "uuid"}, {**TEXT, "format": "uuid4"}, {"UP-06"}),
    "isbn": ({**TEXT, "format": "isbn13"}, {**TEXT, "format": "isbn"}, set()),
    "names": ({**TEXT, "format": "k8s-short-name"}, {**TEXT, "format": "k8s-long-name"}, set()),
    "required fields": (
        {**OBJECT, "required": ["a"]},
        {**OBJECT, "required": ["a"], "minProperties": 1},
        set(),
    ),
    "more than the required fields": (
        {**OBJECT, "required": ["a"]},
        {**OBJECT, "required": ["a"], "minProperties": 2},
        {"UP-06"},
    ),
    "a required field that is gone": (
        {**OBJECT, "required": ["a"]},
        {"type": "object", "properties": {"b": TEXT}, "minProperties": 1},
        {"UP-06", "UP-08"},
    ),
    "order of alternatives": (
        {**TEXT, "oneOf": EITHER},
        {**TEXT, "oneOf": EITHER[::-1]},
        set(),
    ),
    "lengths of choices": (CHOICE, {**CHOICE, "minLength": 1, "maxLength": 2}, set()),
    "too long a choice": (CHOICE, {**CHOICE, "maxLength": 1}, {"UP-06"}),
    "pattern of choices": (CHOICE, {**CHOICE, "pattern": "^[a-z]+$"}, set()),
    "pattern of another choice": (CHOICE, {**CHOICE, "pattern": "^a"}, {"UP-06"}),
    "pattern that nothing can read": (CHOICE, {**CHOICE, "pattern": "[["}, {"UP-06"}),
    "int32": (_ranged(minimum=0, maximum=9), _ranged(minimum=0, maximum=9, format="int32"), set()),
    "int32 or less": (_ranged(maximum=9), _ranged(maximum=9, format="int32"), {"UP-06"}),
    "limits of int32": (_ranged(format="int32"), _ranged(maximum=2**31 - 1), set()),
    "more than int32": (_ranged(format="int32"), _ranged(maximum=2**31 - 2), {"UP-06"}),
    "listed numbers": (_ranged(enum=[1, 3]), _ranged(enum=[1, 3], minimum=1, maximum=3), set()),
    "no finite number": (_ranged(minimum=1), _ranged(minimum=float("inf")), {"UP-06"}),
    "no number": (_ranged(maximum=1), _ranged(maximum=float("nan")), {"UP-06"}),
    "above zero": (_ranged(minimum=0, exclusiveMinimum=True), _ranged(minimum=1), set()),
    "below ten": (_ranged(maximum=10, exclusiveMaximum=True), _ranged(maximum=9), set()),
    "above zero of numbers": (
        {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        {"type": "number", "minimum": 1},
        {"UP-06"},
    ),
}
"""New limits, and whether a former one implies them."""


@pytest.mark.parametrize("name", IMPLIED)
def test_limits_that_others_imply(name: str) -> None:
    """Proves: UP-06."""
    old, new, expected = IMPLIED[name]
    assert _changed(old, new, []) == expected


CEL: dict[str, tuple[dict[str, Any], set[str]]] = {
    "self == oldSelf": ({}, set()),
    "self == oldSelf || self == 'a'": ({}, set()),
    "oldSelf == 'a' ? self == 'a' && true : true": ({}, set()),
    "self.startsWith(oldSelf) && self.size() < 9": ({}, {"UP-06"}),
    "(self == oldSelf && self != 'a')": ({}, set()),
    "self == oldSelf && oldSelf.all(a, a != 'b' && true)": ({}, set()),
    "self != 'oldSelf'": ({}, {"UP-06"}),
    "oldSelf.hasValue() || self == 'a'": ({"optionalOldSelf": True}, {"UP-06"}),
    "!oldSelf.hasValue() || self == oldSelf.value()": ({"optionalOldSelf": True}, set()),
    "oldSelf.hasValue() ? self == oldSelf.value() : true": ({"optionalOldSelf": True}, set()),
    "oldSelf.orValue(self) == self": ({"optionalOldSelf": True}, set()),
    "oldSelf.orValue('a') == self": ({"optionalOldSelf": True}, {"UP-06"}),
    "oldSelf.optMap(a, a == self).orValue(true)": ({"optionalOldSelf": True}, set()),
    "self  !=  'b'  // never": ({}, set()),
    "self!='b'": ({}, set()),
    "self != 'b '": ({}, {"UP-06"}),
}
"""New rules beside ``self != 'b'``, and the contract rules that they break."""


@pytest.mark.parametrize("rule", CEL)
def test_new_rules_of_cel(rule: str) -> None:
    """A rule without a part that reads only the new value refuses no write that keeps it.

    Proves: UP-06.
    """
    more, expected = CEL[rule]
    old = {**TEXT, RULES: [{"rule": "self != 'b'"}]}
    assert _changed(old, {**TEXT, RULES: [{"rule": rule, **more}]}, []) == expected


def test_status_is_required() -> None:
    """Objects are created without status.

    Proves: UP-05.
    """
    old: dict[str, Any] = {"type": "object", "properties": {"status": OBJECT}}
    (change,) = find_schema_changes(old, {**old, "required": ["status"]}, KEYWORDS)
    assert (change.rule, change.field) == ("UP-05", "status")


def test_only_types_count_in_status() -> None:
    def status(field: dict[str, Any]) -> dict[str, Any]:
        part = {"type": "object", "properties": {"a": field}}
        return {"type": "object", "properties": {"status": part}}

    limited = {**NUMBER, "maximum": 1}
    assert list(find_schema_changes(status(NUMBER), status(limited), KEYWORDS)) == []
    (change,) = find_schema_changes(status(MAP), status(LIST), KEYWORDS)
    assert (change.rule, change.field) == ("UP-07", "status.a")


def _changed_names(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str]]:
    """Return rule and field of what changes when the schemas of an object's names change."""
    before, after = (
        {"type": "object", "properties": {"metadata": {"type": "object", "properties": names}}}
        for names in (old, new)
    )
    return [(each.rule, each.field) for each in find_schema_changes(before, after, KEYWORDS)]


@pytest.mark.parametrize("field", ["name", "generateName"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, {"maxLength": 20}),
        ({}, {"maxLength": 20}),
        ({"maxLength": 30}, {"maxLength": 20}),
        (None, {"minLength": 9}),
        (None, {"pattern": "^a"}),
        (None, {"format": "k8s-short-name"}),
        (None, {"enum": ["default"]}),
        (None, {"not": {"pattern": "^a"}}),
    ],
)
def test_names_of_objects_have_new_limits(
    field: str, old: dict[str, Any] | None, new: dict[str, Any]
) -> None:
    """Proves: UP-06."""
    before = {} if old is None else {field: {**TEXT, **old}}
    after = {field: {**TEXT, **new}}
    assert _changed_names(before, after) == [("UP-06", f"metadata.{field}")]
    assert _changed_names(after, before) == []
    assert _changed_names(after, after) == []


@pytest.mark.parametrize(
    "name", [{}, {"minLength": 1}, {"maxLength": 253}, {"format": "k8s-long-name"}]
)
def test_names_that_the_api_server_refuses_itself_are_no_change(name: dict[str, Any]) -> None:
    assert _changed_names({}, {"name": {**TEXT, **name}}) == []
    wider = {"name": {**TEXT, "minLength": 0, "maxLength": 300, "nullable": True}}
    assert _changed_names(wider, {"name": {**TEXT, **name}}) == []


LABELS = {"type": "object", "additionalProperties": TEXT}
EMBEDDED_CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "kind": ({}, {"kind": {**TEXT, "enum": ["A"]}}, ["kind"]),
    "apiVersion": ({}, {"apiVersion": {**TEXT, "pattern": "^a/"}}, ["apiVersion"]),
    "no limit": ({}, {"kind": TEXT, "apiVersion": TEXT, "metadata": {"type": "object"}}, []),
    "name": (
        {},
        {"metadata": {"type": "object", "properties": {"name": {**TEXT, "maxLength": 253}}}},
        ["metadata.name"],
    ),
    "labels": (
        {"metadata": {"type": "object"}},
        {
            "metadata": {
                "type": "object",
                "properties": {
                    "labels": {**LABELS, "additionalProperties": {**TEXT, "maxLength": 9}}
                },
            }
        },
        ["metadata.labels{}"],
    ),
    "required": (
        {"metadata": {"type": "object", "properties": {"labels": LABELS}}},
        {"metadata": {"type": "object", "required": ["labels"]}},
        ["metadata.labels"],
    ),
}
"""Fields of an embedded object in an old and a new schema, and the fields with findings."""


@pytest.mark.parametrize("name", EMBEDDED_CHANGES)
def test_fields_of_embedded_objects_have_new_limits(name: str) -> None:
    """Proves: UP-05, UP-06."""
    old, new, expected = EMBEDDED_CHANGES[name]
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, OPEN: True}
    before, after = (_below("field", {**embedded, "properties": fields}) for fields in (old, new))
    after["properties"]["spec"]["properties"]["part"]["required"] = ["apiVersion", "kind"]
    found = list(find_schema_changes(before, after, KEYWORDS))
    assert [each.field for each in found] == [f"spec.part.{field}" for field in expected]
    assert {each.rule for each in found} <= {"UP-05", "UP-06"}
    assert list(find_schema_changes(after, before, KEYWORDS)) == []


OLD: dict[str, Any] = {"failureDomains": MAP, "size": TEXT}


def _stored(folder: Path, old: dict[str, Any], new: dict[str, Any], **options: Any) -> set[str]:
    """Return the rules on an upgrade in which objects are stored in v1 instead of v1alpha1."""
    before = crd("AcmeMachine", LABEL, ("v1", "v1alpha1"), old)
    after = crd("AcmeMachine", LABEL, ("v1alpha1", "v1"), old)
    after["spec"]["versions"][1] = crd("AcmeMachine", LABEL, ("v1",), new)["spec"]["versions"][0]
    before["spec"]["conversion"] = options.get("before", {"strategy": "None"})
    after["spec"].update({k: v for k, v in options.items() if k == "conversion"})
    for name, content in (("old", before), ("new", after)):
        (folder / name).mkdir()
        write(folder / name, content)
    found = violations(str(folder / "new"), "--upgrade", str(folder / "old"))
    return {each["id"] for each in found if "v1alpha1" in each["message"]}


LOST: dict[str, dict[str, Any]] = {
    "a-field-is-renamed": {"domains": MAP, "size": TEXT},
    "a-map-becomes-a-list": {"failureDomains": LIST, "size": TEXT},
    "a-scalar-has-another-type": {"failureDomains": MAP, "size": NUMBER},
    "a-value-of-a-map-has-another-type": {
        "failureDomains": {"type": "object", "additionalProperties": NUMBER},
        "size": TEXT,
    },
}


@pytest.mark.parametrize("case", LOST)
def test_values_are_lost_when_another_version_is_stored(case: str, tmp_path: Path) -> None:
    """Proves: UP-17."""
    assert "UP-17" in _stored(tmp_path, OLD, LOST[case])
    result = run(str(tmp_path / "new"), "--upgrade", str(tmp_path / "old"))
    assert result.exit_code == 1


def test_nothing_is_lost_in_a_wider_version(tmp_path: Path) -> None:
    assert _stored(tmp_path, OLD, {**OLD, "more": TEXT}) == set()


def test_nothing_is_lost_where_a_webhook_converts(tmp_path: Path) -> None:
    client = {"url": "https://a.example.com"}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    conversion = {"strategy": "Webhook", "webhook": webhook}
    assert _stored(tmp_path, OLD, LOST["a-field-is-renamed"], conversion=conversion) == set()


def test_a_conversion_that_is_not_mentioned_stays(tmp_path: Path) -> None:
    client = {"url": "https://a.example.com"}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    before = {"strategy": "Webhook", "webhook": webhook}
    assert _stored(tmp_path, OLD, LOST["a-field-is-renamed"], before=before) == set()


def test_limits_of_the_version_that_is_stored_now(tmp_path: Path) -> None:
    assert _stored(tmp_path, OLD, {**OLD, "size": {**TEXT, "maxLength": 3}}) == {"UP-06"}


def _scaled(folder: Path, change: dict[str, Any]) -> set[str]:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    old = crd("AcmeMachine", LABEL, ("v1alpha1", "v1"))
    old["spec"]["versions"][1]["subresources"]["scale"] = scale
    new = copy.deepcopy(old)
    new["spec"]["versions"][1]["subresources"] = {"status": {}, **change}
    for name, content in (("old", old), ("new", new)):
        (folder / name).mkdir()
        write(folder / name, content)
    found = violations(str(folder / "new"), "--upgrade", str(folder / "old"))
    return {each["id"] for each in found}


@pytest.mark.parametrize("change", [{}, {"scale": {"specReplicasPath": ".spec.other"}}])
def test_scale_stays(change: dict[str, Any], tmp_path: Path) -> None:
    """Proves: UP-21."""
    assert _scaled(tmp_path, change) == {"UP-21"}
