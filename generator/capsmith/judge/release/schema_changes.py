"""Compare two releases' schemas to find effects on objects that the old release stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from capsmith.contract.model import Keyword
from capsmith.judge.release.keyword_changes import find_keyword_changes
from capsmith.manifests.crds import EMBEDDED, INT_OR_STRING, OPEN, describe, read_types
from capsmith.manifests.parse import mapping_of, texts_of

_METADATA = "metadata"
_OF_TYPE = frozenset({"apiVersion", "kind"})
_OF_API_SERVER = _OF_TYPE | {_METADATA}
# Of an object's metadata, a CRD can limit these fields only.  The API server itself limits them to
# DNS subdomains, generateName also with a hyphen at its end:
# https://github.com/kubernetes/kubernetes/blob/v1.35.0/staging/src/k8s.io/apimachinery/pkg/api/validation/generic.go
_NAMES: Mapping[str, Mapping[str, Any]] = {
    "name": {"type": "string", "minLength": 1, "maxLength": 253, "format": "k8s-long-name"},
    "generateName": {"type": "string", "maxLength": 253},
}
_STATUS = "status"
_VALUES = "{}"
"""What a path has for the values of a map."""
TYPE, TYPE_OF_ALL, PRUNED, REQUIRED = "UP-07", "UP-18", "UP-08", "UP-05"
"""Ids of the rules about changed types, changed types of fields common to all objects, pruned
fields and required fields."""


class SchemaChange(NamedTuple):
    """A difference between an old and a new release's schemas that affects stored objects."""

    rule: str
    field: str
    """Dotted path to the field, where ``[]`` means list items and ``{}`` means map values."""
    message: str


def find_schema_changes(
    old: Any, new: Any, keywords: Mapping[str, Keyword]
) -> Iterator[SchemaChange]:
    """Yield the differences between two schemas for a kind.

    In status, only type changes are yielded, because controllers write all values again.  That
    status itself is required is yielded, too: objects are created without it.
    """
    comparison = _Comparison(keywords)
    for change in comparison.find(mapping_of(old), mapping_of(new), "", is_set=True):
        is_in_status = change.field == _STATUS or change.field.startswith(f"{_STATUS}.")
        if not is_in_status or (change.rule, change.field) == (REQUIRED, _STATUS):
            yield change
        elif change.rule in (TYPE, TYPE_OF_ALL):
            yield change._replace(rule=TYPE)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A walk through two schemas."""

    keywords: Mapping[str, Keyword]

    def find(
        self,
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        path: str,
        *,
        is_set: bool,
        may_lack: bool = False,
    ) -> Iterator[SchemaChange]:
        """Yield the changes of a field.

        ``is_set`` means that each object has a value, ``may_lack`` that the API server drops null.
        """
        # After a change of type, the limits cannot be compared.
        before, after = read_types(old), read_types(new)
        if not before <= after:
            kinds = (describe(each) for each in (old, new))
            # If the types overlap, it depends on the value.
            rule = TYPE_OF_ALL if is_set and before.isdisjoint(after) else TYPE
            yield SchemaChange(rule, path, "was {} and is now {}".format(*kinds))
            return
        for change in find_keyword_changes(old, new, self.keywords):
            # From fields and maps, the API server drops null when it reads an object.
            if change.keyword == "nullable" and may_lack:
                yield SchemaChange(PRUNED, path, "is dropped if it is null")
            else:
                yield SchemaChange(change.rule, path, change.message)
        default, successor = old.get("default"), new.get("default")
        # The API server fills in defaults when it reads, so stored objects change without a write.
        if default != successor:
            message = f"had the default {default!r} and now has {successor!r}"
            yield SchemaChange("UP-09", path, message)
        yield from _required(old, new, path)
        yield from self._below(old, new, path, is_set=is_set)

    def _below(
        self, old: Mapping[str, Any], new: Mapping[str, Any], path: str, *, is_set: bool
    ) -> Iterator[SchemaChange]:
        parts, required = mapping_of(new, "properties"), texts_of(old, "required")
        needed = texts_of(new, "required")
        for name, part in mapping_of(old, "properties").items():
            if name in _OF_API_SERVER and _is_object(old, path):
                continue
            below = f"{path}.{name}".removeprefix(".")
            has_value = name in required or "default" in mapping_of(part) or below == "spec"
            successor = parts.get(name, new.get("additionalProperties"))
            if isinstance(successor, Mapping):
                yield from self.find(
                    mapping_of(part),
                    successor,
                    below,
                    is_set=is_set and has_value,
                    may_lack=name not in needed,
                )
            elif name not in parts and not _keeps_unknown(new):
                yield SchemaChange(PRUNED, below, "is no longer declared")
        yield from self._others(old, new, path)
        yield from self._declared(old, new, path)
        if not path:
            yield from self._names(old, new)
        elif _is_embedded(old):
            yield from self._embedded(old, new, path)

    def _names(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[SchemaChange]:
        """Yield the new limits of an object's name, whether or not the old schema declares it."""
        for name, limits in _NAMES.items():
            before, after = (
                mapping_of(each, "properties", _METADATA, "properties", name) for each in (old, new)
            )
            changes = find_keyword_changes(limits, after, self.keywords)
            narrower = {change.keyword for change in changes}
            for change in find_keyword_changes(before, after, self.keywords):
                if change.keyword in narrower:
                    yield SchemaChange(change.rule, f"{_METADATA}.{name}", change.message)

    def _embedded(
        self, old: Mapping[str, Any], new: Mapping[str, Any], path: str
    ) -> Iterator[SchemaChange]:
        """Yield the changes of what the API server declares of an embedded object."""
        for name in sorted(_OF_API_SERVER):
            after = mapping_of(new, "properties", name)
            before = _declare(mapping_of(old, "properties", name), after)
            for change in self.find(before, after, f"{path}.{name}", is_set=False, may_lack=True):
                # Metadata is kept, whether or not a schema declares it.
                if change.rule != PRUNED:
                    yield change

    def _declared(
        self, old: Mapping[str, Any], new: Mapping[str, Any], path: str
    ) -> Iterator[SchemaChange]:
        """Yield what a schema that kept any value refuses since it declares fields."""
        if not _keeps_unknown(old):
            return
        known = mapping_of(old, "properties")
        former = mapping_of(old, "additionalProperties")
        for name, part in mapping_of(new, "properties").items():
            is_part_of_server = name in _OF_API_SERVER and _is_object(old, path)
            if name not in known and not is_part_of_server:
                below = f"{path}.{name}".removeprefix(".")
                yield from self._limits(former, mapping_of(part), below)
        values = mapping_of(new, "additionalProperties")
        if values and not former:
            yield from self._limits(former, values, path + _VALUES)

    def _limits(
        self, old: Mapping[str, Any], new: Mapping[str, Any], path: str
    ) -> Iterator[SchemaChange]:
        """Yield the changes of a value that the old schema did not declare by its path."""
        for change in self.find(old, new, path, is_set=False, may_lack=True):
            # A new field's default is no change of an old one.
            if change.rule != "UP-09":
                yield change

    def _others(
        self, old: Mapping[str, Any], new: Mapping[str, Any], path: str
    ) -> Iterator[SchemaChange]:
        for key, mark in (("items", "[]"), ("additionalProperties", _VALUES)):
            before, after = mapping_of(old, key), mapping_of(new, key)
            if before and after:
                yield from self.find(
                    before, after, path + mark, is_set=False, may_lack=mark == _VALUES
                )
        is_closed = _keeps_unknown(old) and not _keeps_unknown(new)
        if is_closed and "object" in read_types(new):
            yield SchemaChange(PRUNED, path, "no longer keeps undeclared fields")


def _is_object(schema: Mapping[str, Any], path: str) -> bool:
    """Return whether a schema describes whole objects, of which the API server declares a part."""
    return not path or _is_embedded(schema)


def _is_embedded(schema: Mapping[str, Any]) -> bool:
    return schema.get(EMBEDDED) is True


def _declare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``old`` with the fields that only ``new`` declares, without limits."""
    declared = {key: new[key] for key in ("type", INT_OR_STRING) if key in new} | dict(old)
    parts = mapping_of(new, "properties")
    if parts:
        known = mapping_of(old, "properties")
        added = {name: _declare(mapping_of(known, name), mapping_of(parts, name)) for name in parts}
        declared["properties"] = {**known, **added}
    for key in ("items", "additionalProperties"):
        if isinstance(new.get(key), Mapping):
            declared[key] = _declare(mapping_of(old, key), new[key])
    return declared


def _required(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[SchemaChange]:
    before = set(_without_default(old))
    if not path:
        before |= _OF_API_SERVER
    elif _is_embedded(old):
        before |= _OF_TYPE
    for name in _without_default(new):
        if name not in before:
            yield SchemaChange(REQUIRED, f"{path}.{name}".removeprefix("."), "is now required")


def _without_default(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the required fields that the API server does not fill in."""
    for name in texts_of(schema, "required"):
        if "default" not in mapping_of(schema, "properties", name):
            yield name


def _keeps_unknown(schema: Mapping[str, Any]) -> bool:
    return schema.get(OPEN) is True or "additionalProperties" in schema
