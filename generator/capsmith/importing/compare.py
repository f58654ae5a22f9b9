"""Compare two CRDs by meaning: equal CRDs accept, prune and merge the same objects.

Schemas are compared in a normal form, which omits descriptions and makes the API server's defaults
explicit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from enum import StrEnum
from typing import Any, NamedTuple

from capsmith.manifests.parse import list_of, mapping_of, text_of, texts_of

Schema = Mapping[str, Any]
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
RULES = "x-kubernetes-validations"
_TEXTS = frozenset({"description", "title", "example", "externalDocs"})
_UNSET: Mapping[str, Any] = {
    "nullable": False,
    "uniqueItems": False,
    "exclusiveMinimum": False,
    "exclusiveMaximum": False,
    "x-kubernetes-preserve-unknown-fields": False,
    "x-kubernetes-embedded-resource": False,
    INT_OR_STRING: False,
    "x-kubernetes-map-type": "granular",
    "required": [],
    "properties": {},
    RULES: [],
    "enum": [],
    "allOf": [],
}
"""Schema keys, each with the value that the API server assumes if the key is missing."""
_WITHOUT_EFFECT: Mapping[str, Schema] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
    "status": {"type": "object"},
}
"""Properties of whole objects, each with the normal form that means the same as no property."""
_INTEGER_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_BELOW = ("items", "additionalProperties", "not")
_CHOICES = ("oneOf", "anyOf", "allOf")


def normalize(schema: Schema) -> dict[str, Any]:
    """Return a schema's normal form. Values of an unexpected type stay unchanged.

    Schemas with equal normal forms accept, prune, default and merge the same objects: descriptions
    and the order of keys, ``required`` and rules do not matter.  The converse does not hold: two
    schemas that accept the same objects may still be reported as different.  An importer must err
    on this side.
    """
    found = simplify(schema)
    if found.get("type") == "array":
        # The default of server-side apply for a list without a type.
        found.setdefault(LIST_TYPE, "atomic")
    for key in ("required", "enum"):
        if isinstance(found.get(key), list):
            # Enum values may have different types, which Python cannot compare, so they are sorted
            # by their JSON.
            found[key] = sorted(found[key], key=_key)
    if isinstance(found.get(RULES), list):
        found[RULES] = sorted((_rule(rule) for rule in found[RULES]), key=_key)
    if isinstance(found.get("properties"), Mapping):
        found["properties"] = {
            str(name): normalize_value(below) for name, below in found["properties"].items()
        }
    for key in _BELOW:
        if key in found:
            found[key] = normalize_value(found[key])
    for key in _CHOICES:
        if isinstance(found.get(key), list):
            found[key] = [normalize_value(below) for below in found[key]]
    _drop_filled(found)
    return {
        # YAML reads a plain 2030-01-31 as a date, but the API server receives a string.
        key: value.isoformat() if isinstance(value, date) else value
        for key, value in found.items()
        if key not in _TEXTS and not (key in _UNSET and value == _UNSET[key])
    }


def _drop_filled(schema: dict[str, Any]) -> None:
    """Remove names from ``required`` that have a default, which is filled in before validation."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and isinstance(schema.get("required"), list):
        schema["required"] = [
            name
            for name in schema["required"]
            if not isinstance(name, str) or not _is_filled(properties.get(name))
        ]


def _is_filled(schema: Any) -> bool:
    return isinstance(schema, Mapping) and "default" in schema and not schema.get("nullable")


def normalize_value(value: Any) -> Any:
    """Return a schema's normal form. Any other value is returned unchanged."""
    return normalize(value) if isinstance(value, Mapping) else value


def simplify(schema: Schema) -> dict[str, Any]:
    """Return a copy without ``allOf`` and ``anyOf`` branches that only repeat other keywords."""
    found = _with_one_enum(dict(schema))
    if found.get(INT_OR_STRING) is not True:
        return found
    # controller-gen writes this anyOf next to x-kubernetes-int-or-string, which already means it.
    if found.get("anyOf") == _INTEGER_OR_STRING:
        del found["anyOf"]
    if isinstance(found.get("allOf"), list):
        found["allOf"] = [part for part in found["allOf"] if part != {"anyOf": _INTEGER_OR_STRING}]
        if not found["allOf"]:
            del found["allOf"]
    return found


def _with_one_enum(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace enums in ``allOf`` with the values that all of them contain.

    controller-gen repeats the enum of a type at each use, and joins the two with allOf.
    """
    parts = schema.get("allOf")
    if not isinstance(parts, list) or not parts:
        return schema
    enums = [part["enum"] for part in parts if isinstance(part, Mapping) and list(part) == ["enum"]]
    if len(enums) < len(parts) or not all(isinstance(enum, list) for enum in enums):
        return schema
    first, *others = [*([schema["enum"]] if "enum" in schema else []), *enums]
    common = [value for value in first if all(value in other for other in others)]
    found = {key: value for key, value in schema.items() if key != "allOf"}
    return {**found, "enum": common} if common else schema


def normalize_columns(version: Any) -> list[dict[str, Any]]:
    """Return a version's printer columns in normal form, without descriptions."""
    return [
        {
            "name": text_of(column, "name"),
            "type": text_of(column, "type"),
            "jsonPath": normalize_path(text_of(column, "jsonPath")),
            "format": text_of(column, "format"),
            "priority": column.get("priority") or 0,
        }
        for column in list_of(version, "additionalPrinterColumns")
        if isinstance(column, Mapping)
    ]


def normalize_path(path: str) -> str:
    r"""Return a printer column's JSON path in dotted form: ``['a\.b']`` -> ``.a\.b``."""
    found = path.strip()
    for quote in ("'", '"'):
        parts = found.split(f"[{quote}")
        found = parts[0] + "".join(
            f".{part.replace(f'{quote}]', '', 1)}" if f"{quote}]" in part else f"[{quote}{part}"
            for part in parts[1:]
        )
    return found


def _rule(rule: Any) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    kept = {key: value for key, value in rule.items() if value not in ("", None, False)}
    if isinstance(kept.get("rule"), str):
        kept["rule"] = kept["rule"].strip()
    # The API server's default reason for a rule.
    if kept.get("reason") == "FieldValueInvalid":
        del kept["reason"]
    return kept


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


Path = tuple[str | int, ...]
_SCHEMA = ("schema", "openAPIV3Schema")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


class DifferenceKind(StrEnum):
    """How a value in the CRD that capsmith would generate differs from the imported CRD."""

    MISSING = "missing"
    CHANGED = "changed"
    ADDED = "added"


class Difference(NamedTuple):
    """A difference between an imported CRD and the CRD generated from its provider.yaml."""

    change: DifferenceKind
    version: str
    """API version in which the CRDs differ; empty if the difference concerns the whole CRD."""
    path: Path
    """Path to the value in the original CRD. For an addition, this is where the value would be."""
    field: str
    """Path to the field in an object, such as ``.spec.network.cidr``; empty outside schemas."""
    what: str
    """The keyword or other part that differs: ``pattern``, ``field``, ``printer column Age``."""
    original: Any = None
    generated: Any = None
    is_addition: bool = False
    """Whether the difference cannot be noticed by any object or client of the original CRD."""


def compare_crds(original: Mapping[str, Any], generated: Mapping[str, Any]) -> list[Difference]:
    """Return all differences between two CRDs, in the original's order."""
    return [
        *_names(original, generated),
        *_versions(original, generated),
    ]


def compare_schemas(original: Mapping[str, Any], generated: Mapping[str, Any]) -> list[Difference]:
    """Return the differences between two schemas for a field; empty if they are equivalent."""
    return list(_schema(normalize(original), normalize(generated), (), ""))


def _names(original: Mapping[str, Any], generated: Mapping[str, Any]) -> Iterator[Difference]:
    one, other = (text_of(crd, "spec", "scope") or "Namespaced" for crd in (original, generated))
    if one != other:
        yield Difference(DifferenceKind.CHANGED, "", ("spec", "scope"), "", "scope", one, other)
    for key in ("kind", "plural", "singular", "listKind"):
        one, other = (text_of(crd, "spec", "names", key) for crd in (original, generated))
        # The API server fills in missing names, as capsmith does.
        if one and one != other:
            yield Difference(
                DifferenceKind.CHANGED, "", ("spec", "names", key), "", key, one, other
            )
    for key, what in (("shortNames", "short name"), ("categories", "category")):
        path: Path = ("spec", "names", key)
        own, made = (
            [name.strip() for name in texts_of(crd, "spec", "names", key)]
            for crd in (original, generated)
        )
        for index, name in enumerate(own):
            if name not in made:
                yield Difference(
                    DifferenceKind.MISSING, "", (*path, index), "", f"{what} {name}", name
                )
        for name in made:
            if name not in own:
                # An additional category does no harm, but an additional short name may belong to
                # another kind.
                is_free = key == "categories"
                yield Difference(
                    DifferenceKind.ADDED, "", path, "", f"{what} {name}", None, name, is_free
                )


def _versions(original: Mapping[str, Any], generated: Mapping[str, Any]) -> Iterator[Difference]:
    made = {text_of(each, "name"): each for each in list_of(generated, "spec", "versions")}
    own = list_of(original, "spec", "versions")
    for index, version in enumerate(own):
        name = text_of(version, "name")
        path: Path = ("spec", "versions", index)
        if name not in made:
            yield Difference(DifferenceKind.MISSING, name, path, "", "version", name)
        else:
            yield from _version(name, path, mapping_of(version), mapping_of(made[name]))
    for name in made:
        if name not in {text_of(version, "name") for version in own}:
            path = ("spec", "versions")
            # Clients cannot request a version that is not served.
            is_hidden = made[name].get("served") is False
            yield Difference(DifferenceKind.ADDED, name, path, "", "version", None, name, is_hidden)


def _version(
    name: str, path: Path, own: Mapping[str, Any], made: Mapping[str, Any]
) -> Iterator[Difference]:
    for key in ("served", "storage"):
        if own.get(key) is not made.get(key):
            yield Difference(
                DifferenceKind.CHANGED, name, (*path, key), "", key, own.get(key), made.get(key)
            )
    # No client sees the schema of a version that is not served, so it may differ.
    if not own.get("served"):
        return
    for key in ("deprecated", "deprecationWarning", "selectableFields"):
        if own.get(key) and own.get(key) != made.get(key):
            yield Difference(DifferenceKind.MISSING, name, (*path, key), "", key, own[key])
    yield from _subresources(name, path, own, made)
    yield from _columns(name, path, own, made)
    first, second = (_objects(mapping_of(each, *_SCHEMA)) for each in (own, made))
    for found in _schema(first, second, (*path, *_SCHEMA), ""):
        yield found._replace(version=name)


def _objects(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of the schema of whole objects, without parts that change nothing.

    A status of type object without properties cannot hold anything, and every object has the type
    metadata, whether its schema has them or not.  Other parts stay unchanged.
    """
    found = normalize(schema)
    if isinstance(found.get("properties"), Mapping):
        found["properties"] = {
            name: below
            for name, below in found["properties"].items()
            if below != _WITHOUT_EFFECT.get(name)
        }
    return found


def _subresources(
    name: str, path: Path, own: Mapping[str, Any], made: Mapping[str, Any]
) -> Iterator[Difference]:
    first, second = (_subresources_of(each) for each in (own, made))
    # With a status subresource, the status can no longer be written together with the object.
    has_status = "status" in mapping_of(_objects(mapping_of(own, *_SCHEMA)), "properties")
    for key in dict.fromkeys((*first, *second)):
        one, other = first.get(key), second.get(key)
        if one != other:
            change = _change(key in first, key in second)
            where, what = (*path, "subresources", key), f"subresource {key}"
            is_new = change is DifferenceKind.ADDED and not (key == "status" and has_status)
            yield Difference(change, name, where, "", what, one, other, is_new)


def _subresources_of(version: Mapping[str, Any]) -> dict[str, Any]:
    """Return the subresources that have an effect; the status subresource needs a status schema."""
    found = dict(mapping_of(version, "subresources"))
    schema = _objects(mapping_of(version, *_SCHEMA))
    if "status" not in mapping_of(schema, "properties"):
        found.pop("status", None)
    return found


def _columns(
    name: str, path: Path, own: Mapping[str, Any], made: Mapping[str, Any]
) -> Iterator[Difference]:
    """Yield differences between the columns ``own`` and ``made``, regardless of order.

    The order does not matter, because each contract inserts its own columns.
    """
    first, second = normalize_columns(own), normalize_columns(made)
    path = (*path, "additionalPrinterColumns")
    for index, column in enumerate(first):
        if column not in second:
            what = f"printer column {column['name']}"
            yield Difference(DifferenceKind.MISSING, name, (*path, index), "", what, column)
    for column in second:
        if column not in first:
            what = f"printer column {column['name']}"
            yield Difference(DifferenceKind.ADDED, name, path, "", what, None, column, True)


def _schema(
    own: Mapping[str, Any], made: Mapping[str, Any], path: Path, field: str
) -> Iterator[Difference]:
    for key in dict.fromkeys((*own, *made)):
        one, other = own.get(key), made.get(key)
        if key == "properties":
            # Values that were kept as unknown keys now have limits.
            is_closed = "additionalProperties" not in own and not own.get(_PRESERVE)
            yield from _properties(one or {}, other or {}, (*path, key), field, is_closed)
        elif one == other and type(one) is type(other):
            continue
        elif key in _BELOW and isinstance(one, Mapping) and isinstance(other, Mapping):
            mark = {"items": "[]", "additionalProperties": "{}"}.get(key, "")
            yield from _schema(one, other, (*path, key), field + mark)
        elif not _is_same_number(one, other):
            change = _change(key in own, key in made)
            yield Difference(change, "", (*path, key), field or ".", key, one, other)


def _properties(
    own: Mapping[str, Any], made: Mapping[str, Any], path: Path, field: str, is_closed: bool
) -> Iterator[Difference]:
    for name in dict.fromkeys((*own, *made)):
        one, other = own.get(name), made.get(name)
        below = f"{field}.{name}"
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _schema(one, other, (*path, name), below)
        elif one != other:
            change = _change(name in own, name in made)
            # A default would appear in objects that do not set the field.
            is_new = (
                is_closed and change is DifferenceKind.ADDED and "default" not in mapping_of(other)
            )
            yield Difference(change, "", (*path, name), below, "field", is_addition=is_new)


def _change(in_original: bool, in_generated: bool) -> DifferenceKind:
    if in_original and in_generated:
        return DifferenceKind.CHANGED
    return DifferenceKind.MISSING if in_original else DifferenceKind.ADDED


def _is_same_number(one: Any, other: Any) -> bool:
    """Return whether two numbers are equal, even if one is written as 1 and the other as 1.0."""
    numbers = (int, float)
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    return isinstance(one, numbers) and isinstance(other, numbers) and one == other
