"""Schemas of a field in two releases, with what the upgrade does to a stored value."""

from __future__ import annotations

from typing import Any, NamedTuple

Schema = dict[str, Any]
LOST, WRITE, APPLY, CREATE = "lost", "write", "apply", "create"
"""Effects on an object: its value is read otherwise, each write is refused, each server-side apply
is refused, or it cannot be created again."""

TEXT, NUMBER, BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
DECIMAL = {"type": "number"}
EITHER = {"x-kubernetes-int-or-string": True}
KEEP = {"x-kubernetes-preserve-unknown-fields": True}
OPEN = {"type": "object", **KEEP}
OBJECT: Schema = {"type": "object", "properties": {"a": TEXT, "b": NUMBER}}
MAP: Schema = {"type": "object", "additionalProperties": TEXT}
LIST: Schema = {"type": "array", "items": TEXT}
ITEM: Schema = {"type": "object", "required": ["k", "l"], "properties": {"k": TEXT, "l": TEXT}}
ITEMS: Schema = {"type": "array", "items": ITEM}
EMBEDDED = {**OPEN, "x-kubernetes-embedded-resource": True}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
UUID = "123e4567-e89b-42d3-a456-426614174000"


class FieldPair(NamedTuple):
    """A field in the old and the new release, a stored value, and what becomes of it."""

    old: Schema
    new: Schema
    value: Any
    effects: set[str]
    rules: set[str]
    """Rules of which ``capsmith verify --upgrade`` finds a violation, without advice."""


def _keyed(*keys: str) -> Schema:
    return {**ITEMS, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def _ruled(schema: Schema, rule: str, **more: Any) -> Schema:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **more}]}


def _with(schema: Schema, **more: Any) -> Schema:
    return {**schema, **more}


def _typed(name: Schema) -> Schema:
    return {"type": "object", "properties": {"a": name}}


_TYPES = {
    "string to integer": FieldPair(TEXT, NUMBER, "x", {APPLY, CREATE}, {"UP-07"}),
    "integer to both": FieldPair(NUMBER, EITHER, 1, set(), set()),
    "both to integer, of a string": FieldPair(EITHER, NUMBER, "x", {APPLY, CREATE}, {"UP-07"}),
    "both to integer, of an integer": FieldPair(EITHER, NUMBER, 1, set(), {"UP-07"}),
    "integer to number": FieldPair(NUMBER, DECIMAL, 1, set(), set()),
    "boolean to enum": FieldPair(
        BOOLEAN, _with(TEXT, enum=["On"]), True, {APPLY, CREATE}, {"UP-07"}
    ),
    "object to map": FieldPair(OBJECT, MAP, {"a": "x", "b": 1}, {APPLY, CREATE}, {"UP-07"}),
    "map to object": FieldPair(MAP, _typed(TEXT), {"c": "x"}, {LOST}, {"UP-08"}),
    "object to string": FieldPair(OBJECT, TEXT, {"a": "x"}, {LOST, APPLY, CREATE}, {"UP-07"}),
    "list to map": FieldPair(LIST, MAP, ["x"], {APPLY, CREATE}, {"UP-07"}),
    "strings to objects": FieldPair(
        LIST, {"type": "array", "items": OBJECT}, ["x"], {APPLY, CREATE}, {"UP-07"}
    ),
}
_LISTS = {
    "atomic to set": FieldPair(
        LIST, _with(LIST, **{"x-kubernetes-list-type": "set"}), ["x", "x"], {CREATE}, {"UP-06"}
    ),
    "set to atomic": FieldPair(
        _with(LIST, **{"x-kubernetes-list-type": "set"}), LIST, ["x"], set(), set()
    ),
    "atomic to keyed": FieldPair(
        ITEMS, _keyed("k"), [{"k": "x", "l": "x"}] * 2, {CREATE}, {"UP-06"}
    ),
    "fewer keys": FieldPair(
        _keyed("k", "l"),
        _keyed("k"),
        [{"k": "x", "l": "x"}, {"k": "x", "l": "y"}],
        {CREATE},
        {"UP-06"},
    ),
    "more keys": FieldPair(_keyed("k"), _keyed("k", "l"), [{"k": "x", "l": "x"}], set(), set()),
    "at most one": FieldPair(LIST, _with(LIST, maxItems=1), ["x", "y"], {CREATE}, {"UP-06"}),
    "null in a list": FieldPair(
        {"type": "array", "items": _with(TEXT, nullable=True)}, LIST, [None], {CREATE}, {"UP-06"}
    ),
}
_FIELDS = {
    "field removed": FieldPair(OBJECT, _typed(TEXT), {"b": 1}, {LOST}, {"UP-08"}),
    "field of a map's values removed": FieldPair(
        {"type": "object", "additionalProperties": OBJECT},
        {"type": "object", "additionalProperties": _typed(TEXT)},
        {"c": {"b": 1}},
        {LOST},
        {"UP-08"},
    ),
    "required": FieldPair(OBJECT, _with(OBJECT, required=["a"]), {"b": 1}, {CREATE}, {"UP-05"}),
    "required with a default": FieldPair(
        _typed(TEXT),
        _with(_typed(_with(TEXT, default="d")), required=["a"]),
        {"a": "x"},
        set(),
        set(),
    ),
    "required beside an undeclared value": FieldPair(
        OPEN,
        _with(OPEN, properties={"a": KEEP}, required=["a"]),
        {"c": 1},
        {WRITE, APPLY, CREATE},
        {"UP-05"},
    ),
    "default": FieldPair(_typed(TEXT), _typed(_with(TEXT, default="d")), {}, {LOST}, set()),
    "default of what is set": FieldPair(
        _with(TEXT, default="c"), _with(TEXT, default="d"), "c", set(), set()
    ),
    "no default": FieldPair(_with(TEXT, default="c"), TEXT, "c", set(), set()),
    "at least one of its required": FieldPair(
        _with(OBJECT, required=["a"]),
        _with(OBJECT, required=["a"], minProperties=1),
        {"a": "x"},
        set(),
        set(),
    ),
    "at least two": FieldPair(
        OBJECT, _with(OBJECT, minProperties=2), {"a": "x"}, {CREATE}, {"UP-06"}
    ),
}
_LIMITS = {
    "enum": FieldPair(TEXT, _with(TEXT, enum=["x"]), "y", {CREATE}, {"UP-06"}),
    "pattern": FieldPair(TEXT, _with(TEXT, pattern="^x"), "y", {CREATE}, {"UP-06"}),
    "pattern of an enum": FieldPair(
        _with(TEXT, enum=["x", "y"]),
        _with(TEXT, enum=["x", "y"], pattern="^[xy]$", maxLength=1),
        "y",
        set(),
        set(),
    ),
    "maximum": FieldPair(NUMBER, _with(NUMBER, maximum=5), 9, {CREATE}, {"UP-06"}),
    "minimum instead of above": FieldPair(
        _with(NUMBER, minimum=0, exclusiveMinimum=True), _with(NUMBER, minimum=1), 1, set(), set()
    ),
    "int32": FieldPair(NUMBER, _with(NUMBER, format="int32"), 2**40, {CREATE}, {"UP-06"}),
    "int32 in a range": FieldPair(
        _with(NUMBER, minimum=0, maximum=9),
        _with(NUMBER, minimum=0, maximum=9, format="int32"),
        9,
        set(),
        set(),
    ),
    "format": FieldPair(TEXT, _with(TEXT, format="ipv4"), "x", {CREATE}, {"UP-06"}),
    "wider format": FieldPair(
        _with(TEXT, format="uuid4"), _with(TEXT, format="uuid"), UUID, set(), set()
    ),
    "not": FieldPair(TEXT, _with(TEXT, **{"not": {"pattern": "^y"}}), "y", {CREATE}, {"UP-06"}),
    "order of alternatives": FieldPair(
        _with(TEXT, oneOf=[{"pattern": "^x"}, {"pattern": "^y"}]),
        _with(TEXT, oneOf=[{"pattern": "^y"}, {"pattern": "^x"}]),
        "y",
        set(),
        set(),
    ),
}
_CEL = {
    "rule": FieldPair(TEXT, _ruled(TEXT, "self == 'x'"), "y", {CREATE}, {"UP-06"}),
    "rule on a word": FieldPair(
        TEXT, _ruled(TEXT, "self != 'oldSelf'"), "oldSelf", {CREATE}, {"UP-06"}
    ),
    "rule with other spaces": FieldPair(
        _ruled(TEXT, "self != 'z'"), _ruled(TEXT, "self!='z'"), "y", set(), set()
    ),
    "immutable": FieldPair(TEXT, _ruled(TEXT, "self == oldSelf"), "y", set(), set()),
    "immutable and limited": FieldPair(
        TEXT, _ruled(TEXT, "self == oldSelf && self == 'x'"), "y", {WRITE, APPLY}, {"UP-06"}
    ),
    "rule on new objects": FieldPair(
        TEXT,
        _ruled(TEXT, "oldSelf.hasValue() || self == 'x'", optionalOldSelf=True),
        "y",
        {CREATE},
        {"UP-06"},
    ),
    "immutable once set": FieldPair(
        TEXT,
        _ruled(TEXT, "!oldSelf.hasValue() || self == oldSelf.value()", optionalOldSelf=True),
        "y",
        set(),
        set(),
    ),
    "rule beside an undeclared value": FieldPair(
        OPEN, _ruled(OPEN, "false"), {"c": 1}, {WRITE, APPLY, CREATE}, {"UP-06"}
    ),
}
_OPENNESS = {
    "closed": FieldPair(OPEN, _typed(TEXT), {"c": 1}, {LOST}, {"UP-08", "UP-07"}),
    "open": FieldPair(_typed(TEXT), OPEN, {"a": "x"}, set(), set()),
    "declared": FieldPair(
        OPEN, _with(OPEN, properties={"a": NUMBER}), {"a": "x"}, {APPLY, CREATE}, {"UP-07"}
    ),
    "open to map": FieldPair(OPEN, MAP, {"c": 1}, {APPLY, CREATE}, {"UP-07"}),
    "any value to text": FieldPair(
        {"type": "object", "additionalProperties": True}, MAP, {"c": 1}, {APPLY, CREATE}, {"UP-07"}
    ),
    "embedded": FieldPair(OPEN, EMBEDDED, {"c": 1}, {WRITE, APPLY, CREATE}, {"UP-06"}),
    "embedded no longer": FieldPair(EMBEDDED, OPEN, CONFIG, set(), set()),
    "embedded no longer, closed": FieldPair(
        EMBEDDED, {"type": "object"}, CONFIG, {LOST}, {"UP-08"}
    ),
}
PAIRS = {**_TYPES, **_LISTS, **_FIELDS, **_LIMITS, **_CEL, **_OPENNESS}
