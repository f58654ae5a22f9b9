"""Compare two CRDs by meaning: names, scope, versions, schemas, columns and subresources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from capsmith.importing.normal import columns_of, normal
from capsmith.manifests.parse import list_of, mapping_of, text_of, texts_of

Path = tuple[str | int, ...]
_SCHEMA = ("schema", "openAPIV3Schema")
_BELOW = ("items", "additionalProperties", "not")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


class Change(StrEnum):
    """What happens to a part of the original."""

    MISSING = "missing"
    CHANGED = "changed"
    ADDED = "added"


class Difference(NamedTuple):
    """One difference between the original CRD and the generated one."""

    change: Change
    version: str
    """Empty for what concerns the whole CRD."""
    path: Path
    """Keys and indexes in the original CRD; the nearest ones for what is added."""
    field: str
    """The field in the object: ``.spec.network.cidr``; empty outside schemas."""
    what: str
    """The keyword or the part: ``pattern``, ``field``, ``printer column Age``."""
    original: Any = None
    generated: Any = None
    is_addition: bool = False
    """Whether objects and clients of the original notice nothing."""


def compare_crds(original: Mapping[str, Any], generated: Mapping[str, Any]) -> list[Difference]:
    """Return all differences, in the order of the original."""
    return [
        *_names(original, generated),
        *_versions(original, generated),
    ]


def compare_schemas(original: Mapping[str, Any], generated: Mapping[str, Any]) -> list[Difference]:
    """Return the differences between two schemas of a field."""
    return list(_schema(normal(original), normal(generated), (), ""))


def _names(original: Mapping[str, Any], generated: Mapping[str, Any]) -> Iterator[Difference]:
    one, other = (text_of(crd, "spec", "scope") or "Namespaced" for crd in (original, generated))
    if one != other:
        yield Difference(Change.CHANGED, "", ("spec", "scope"), "", "scope", one, other)
    for key in ("kind", "plural", "singular", "listKind"):
        one, other = (text_of(crd, "spec", "names", key) for crd in (original, generated))
        # The API server fills in what is left out, as capsmith does.
        if one and one != other:
            yield Difference(Change.CHANGED, "", ("spec", "names", key), "", key, one, other)
    for key, what in (("shortNames", "short name"), ("categories", "category")):
        path: Path = ("spec", "names", key)
        own, made = (
            [name.strip() for name in texts_of(crd, "spec", "names", key)]
            for crd in (original, generated)
        )
        for index, name in enumerate(own):
            if name not in made:
                yield Difference(Change.MISSING, "", (*path, index), "", f"{what} {name}", name)
        for name in made:
            if name not in own:
                is_free = key == "categories"
                yield Difference(Change.ADDED, "", path, "", f"{what} {name}", None, name, is_free)


def _versions(original: Mapping[str, Any], generated: Mapping[str, Any]) -> Iterator[Difference]:
    made = {text_of(each, "name"): each for each in list_of(generated, "spec", "versions")}
    own = list_of(original, "spec", "versions")
    for index, version in enumerate(own):
        name = text_of(version, "name")
        path: Path = ("spec", "versions", index)
        if name not in made:
            yield Difference(Change.MISSING, name, path, "", "version", name)
        else:
            yield from _version(name, path, mapping_of(version), mapping_of(made[name]))
    for name in made:
        if name not in {text_of(version, "name") for version in own}:
            path = ("spec", "versions")
            is_hidden = made[name].get("served") is False
            yield Difference(Change.ADDED, name, path, "", "version", None, name, is_hidden)


def _version(
    name: str, path: Path, own: Mapping[str, Any], made: Mapping[str, Any]
) -> Iterator[Difference]:
    for key in ("served", "storage"):
        if own.get(key) is not made.get(key):
            yield Difference(
                Change.CHANGED, name, (*path, key), "", key, own.get(key), made.get(key)
            )
    if not own.get("served"):
        return
    for key in ("deprecated", "deprecationWarning", "selectableFields"):
        if own.get(key) and own.get(key) != made.get(key):
            yield Difference(Change.MISSING, name, (*path, key), "", key, own[key])
    yield from _subresources(name, path, own, made)
    yield from _columns(name, path, own, made)
    first, second = (_objects(mapping_of(each, *_SCHEMA)) for each in (own, made))
    for found in _schema(first, second, (*path, *_SCHEMA), ""):
        yield found._replace(version=name)


def _objects(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of a schema of whole objects, without a status that is always empty.

    Otherwise each part of an object counts, even if nothing can be in it.
    """
    found = normal(schema)
    if mapping_of(found, "properties").get("status") == {"type": "object"}:
        found["properties"] = {k: v for k, v in found["properties"].items() if k != "status"}
    return found


def _subresources(
    name: str, path: Path, own: Mapping[str, Any], made: Mapping[str, Any]
) -> Iterator[Difference]:
    first, second = (_subresources_of(each) for each in (own, made))
    # Without a subresource a status is written with the object, and no longer with one.
    has_status = "status" in mapping_of(_objects(mapping_of(own, *_SCHEMA)), "properties")
    for key in dict.fromkeys((*first, *second)):
        one, other = first.get(key), second.get(key)
        if one != other:
            change = _change(key in first, key in second)
            where, what = (*path, "subresources", key), f"subresource {key}"
            is_new = change is Change.ADDED and not (key == "status" and has_status)
            yield Difference(change, name, where, "", what, one, other, is_new)


def _subresources_of(version: Mapping[str, Any]) -> dict[str, Any]:
    """Return the subresources that have an effect: that of the status needs a status."""
    found = dict(mapping_of(version, "subresources"))
    schema = _objects(mapping_of(version, *_SCHEMA))
    if "status" not in mapping_of(schema, "properties"):
        found.pop("status", None)
    return found


def _columns(
    name: str, path: Path, own: Mapping[str, Any], made: Mapping[str, Any]
) -> Iterator[Difference]:
    """Compare columns as sets: contracts add theirs in places of their own."""
    first, second = columns_of(own), columns_of(made)
    path = (*path, "additionalPrinterColumns")
    for index, column in enumerate(first):
        if column not in second:
            what = f"printer column {column['name']}"
            yield Difference(Change.MISSING, name, (*path, index), "", what, column)
    for column in second:
        if column not in first:
            what = f"printer column {column['name']}"
            yield Difference(Change.ADDED, name, path, "", what, None, column, True)


def _schema(
    own: Mapping[str, Any], made: Mapping[str, Any], path: Path, field: str
) -> Iterator[Difference]:
    for key in dict.fromkeys((*own, *made)):
        one, other = own.get(key), made.get(key)
        if key == "properties":
            # What was kept as an unknown key has limits now.
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
            # A default would be in objects that do not mention the field.
            is_new = is_closed and change is Change.ADDED and "default" not in mapping_of(other)
            yield Difference(change, "", (*path, name), below, "field", is_addition=is_new)


def _change(in_original: bool, in_generated: bool) -> Change:
    if in_original and in_generated:
        return Change.CHANGED
    return Change.MISSING if in_original else Change.ADDED


def _is_same_number(one: Any, other: Any) -> bool:
    """Return whether two numbers are equal, of which one may be written as 1 and one as 1.0."""
    numbers = (int, float)
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    return isinstance(one, numbers) and isinstance(other, numbers) and one == other
