"""Check that a CRD version's schema is structural and has only supported keywords.

Follows ``ValidateStructural`` and ``ValidateCustomResourceDefinitionOpenAPISchema``.  Expects
decoded schemas, so callers must find wrong types first.  Null counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from capsmith.judge.checks.apiextensions.lists import find_list_faults
from capsmith.judge.checks.apiextensions.model import Fault, Schema
from capsmith.manifests.parse import list_of, mapping_of
from capsmith.provider_yaml.patterns import explain_refusal
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import quote

_OPEN, _EITHER = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_EMBEDDED, _REST = "x-kubernetes-embedded-resource", "additionalProperties"
_META = ("metadata", "kind", "apiVersion")
_PLAIN = frozenset(
    (
        *("type", "description", "title", "format", "enum", "default", "nullable", "required"),
        *("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "multipleOf"),
    )
)
"""Keywords that cannot be wrong by themselves in a scalar field that has a type."""
_POINTERS = frozenset(
    {"additionalItems", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"}
)
"""Keywords whose empty values count, because they are pointers in Go."""
_KNOWN = _PLAIN | frozenset(
    (
        *("exclusiveMinimum", "exclusiveMaximum", "pattern", "minProperties", "maxProperties"),
        *("uniqueItems", "properties", "items", "externalDocs", "example", "not", _REST),
        *("allOf", "anyOf", "oneOf", _OPEN, _EITHER, _EMBEDDED, "x-kubernetes-list-type"),
        *("x-kubernetes-map-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations"),
    )
)
"""Keywords that the API server keeps; it drops unknown ones."""
_REFUSED = frozenset({"id", "$schema", "$ref", "dependencies", "patternProperties", "definitions"})
"""Keywords that the API server reads only to refuse them."""
_SCALARS = frozenset({"string", "integer", "number", "boolean"})
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_LIMITING = frozenset((*_JUNCTORS, "not", "pattern"))
_OF_LISTS = frozenset(
    ("uniqueItems", *(f"x-kubernetes-{key}" for key in ("list-type", "list-map-keys", "map-type")))
)
"""Keywords without which a schema has no list type or map type that can be wrong."""


@dataclass(frozen=True, slots=True)
class Keywords:
    """The keywords and values that the API server accepts in schemas."""

    types: tuple[str, ...]
    """Values of ``type``."""
    unsupported: tuple[str, ...]
    """JSON Schema keywords that are not allowed in any CRD schema."""
    own: tuple[str, ...]
    """Keywords that are allowed on fields, but not inside allOf, anyOf, oneOf or not."""
    not_at_root: tuple[str, ...]
    """Keywords that are not allowed at the root of a version with a status subresource."""
    list_types: tuple[str, ...]
    """Values of ``x-kubernetes-list-type``."""
    map_types: tuple[str, ...]
    """Values of ``x-kubernetes-map-type``."""


class _Level(Enum):
    ROOT = "at the root"
    FIELD = "of a field"
    ITEM = "of items"


class _Place(NamedTuple):
    """Where a schema is: its path, and what its surroundings forbid."""

    path: Path = ()
    level: _Level = _Level.ROOT
    in_meta: bool = False
    """Whether the schema is inside apiVersion, kind or metadata of an object."""
    takes_default: bool = True

    def at(self, *path: str | int, level: _Level | None = None) -> _Place:
        return self._replace(path=(*self.path, *path), level=level or self.level)


def find_structural_faults(schema: Schema, words: Keywords, has_status: bool) -> list[Fault]:
    """Return the reasons why the API server would reject a version's schema.

    ``has_status`` is true if the version has a status subresource, which restricts the keywords at
    the root.  Defaults are not compared with their schemas.
    """
    check = _StructuralCheck(words)
    if has_status:
        check.report_root(schema)
    if schema.get("nullable") is True:
        check.report(("nullable",), "nullable cannot be true at the root")
    check.check_field(schema, _Place())
    check.report_undeclared(schema, schema, ())
    return check.faults


def is_set(schema: Schema, key: str) -> bool:
    """Return whether the API server treats a keyword as set, i.e. not as Go's zero value."""
    value = schema.get(key)
    return value is not None and (key in _POINTERS or (value is not False and value != ""))


@dataclass(slots=True)
class _StructuralCheck:
    words: Keywords
    faults: list[Fault] = field(default_factory=list)
    unsupported: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.unsupported = frozenset(self.words.unsupported)

    def report(self, path: Path, message: str) -> None:
        self.faults.append(Fault(path, message))

    def report_root(self, schema: Schema) -> None:
        for key in self.words.not_at_root:
            if is_set(schema, key):
                what = "is not allowed at the root of a version with a status subresource"
                self.report((key,), f"{key} {what}")

    def check_field(self, schema: Schema, place: _Place) -> None:
        """Check the schema of a field, of items, of the values of a map, or of an object."""
        if not place.in_meta and _is_plain(schema):
            return
        self._check_keywords(schema, place)
        self._check_type(schema, place)
        self._check_rest(schema, place)
        if place.level is _Level.ROOT or is_set(schema, _EMBEDDED):
            self._check_meta(schema, place)
        if not _LIMITING.isdisjoint(schema):
            skips = _is_int_or_string(schema)
            skips_first = _is_int_or_string(next(iter(list_of(schema, "allOf")), None))
            self._check_limits(schema, place, skips, skips_first)
        self._check_children(schema, place)

    def _check_children(self, schema: Schema, place: _Place) -> None:
        is_object = place.level is _Level.ROOT
        for name, part in mapping_of(schema, "properties").items():
            # Most fields are plain, and a place costs more than this check.
            if part and not place.in_meta and name not in _META and _is_plain(part):
                continue
            child = place.at("properties", name, level=_Level.FIELD)
            if name in _META and (is_object or is_set(schema, _EMBEDDED)):
                child = child._replace(in_meta=True, takes_default=not is_object)
            self.check_field(part or {}, child)
        rest = schema.get(_REST)
        if isinstance(rest, dict):
            child = place.at(_REST, level=_Level.FIELD)
            # Pruning cannot decide which of several values a default would belong to.
            takes = place.takes_default and not place.in_meta
            self.check_field(rest, child._replace(takes_default=takes))
        items = schema.get("items")
        if isinstance(items, dict):
            self.check_field(items, place.at("items", level=_Level.ITEM))

    def _check_type(self, schema: Schema, place: _Place) -> None:
        kind, path = schema.get("type") or "", (*place.path, "type")
        if is_set(schema, _EMBEDDED) and kind != "object":
            self.report(path, f"type must be object, because {_EMBEDDED} is true")
        elif not kind and not is_set(schema, _EITHER) and not is_set(schema, _OPEN):
            self.report(path, f"type {place.level.value} is missing")
        if place.level is _Level.ROOT and kind and kind != "object":
            self.report(path, "type at the root must be object")
        if kind == "array" and not isinstance(schema.get("items"), dict):
            self.report((*place.path, "items"), "a list must declare its items")
        for key in (_OPEN, _EMBEDDED):
            if is_set(schema, _EITHER) and is_set(schema, key):
                self.report((*place.path, key), f"{key} cannot be true together with {_EITHER}")

    def _check_rest(self, schema: Schema, place: _Place) -> None:
        path = (*place.path, _REST)
        if schema.get(_REST) is not None:
            if place.level is _Level.ROOT:
                self.report(path, f"{_REST} is not allowed at the root")
            if is_set(schema, _EMBEDDED):
                self.report(path, f"{_REST} is not allowed together with {_EMBEDDED}")
        bare = is_set(schema, _EMBEDDED) and not is_set(schema, _OPEN)
        if bare and not mapping_of(schema, "properties"):
            message = f"properties must not be empty, because {_EMBEDDED} is true"
            self.report((*place.path, "properties"), message)

    def _check_meta(self, schema: Schema, place: _Place) -> None:
        """Check apiVersion, kind and metadata of an object, which the API server declares."""
        properties = mapping_of(schema, "properties")
        for name, kind in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
            part = properties.get(name, schema)
            if name in properties and mapping_of(part).get("type") != kind:
                self.report((*place.path, "properties", name, "type"), f"{name} must be {kind}")
        if place.level is _Level.ROOT and _limits_metadata(mapping_of(properties, "metadata")):
            message = "metadata cannot limit anything but name and generateName"
            self.report((*place.path, "properties", "metadata"), message)

    def _check_limits(
        self, schema: Schema, place: _Place, skips_any: bool = False, skips_all_any: bool = False
    ) -> None:
        for key in _JUNCTORS:
            if key == "anyOf" and skips_any:
                for number, part in enumerate(list_of(schema, key)):
                    self._check_keywords(part, place.at(key, number))
                continue
            for number, part in enumerate(list_of(schema, key)):
                skips = key == "allOf" and skips_all_any and number == 0
                self._check_nested(part or {}, place.at(key, number), skips)
        if isinstance(schema.get("not"), dict):
            self._check_nested(schema["not"], place.at("not"))
        pattern = schema.get("pattern")
        if pattern and (why := explain_refusal(pattern)):
            message = f"pattern {quote(pattern)} is not a regular expression of RE2: {why}"
            self.report((*place.path, "pattern"), message)

    def _check_nested(self, schema: Schema, place: _Place, skips_any: bool = False) -> None:
        """Check a schema below a junctor, which limits values but declares no fields."""
        self._check_keywords(schema, place)
        self._check_limits(schema, place, skips_any)
        for key in self.words.own:
            # An empty list of keys or rules is not set, but it is a default.
            if is_set(schema, key) and (schema[key] != [] or key == "default"):
                message = f"{key} is not allowed below allOf, anyOf, oneOf and not"
                self.report((*place.path, key), message)
        if "metadata" in mapping_of(schema, "properties"):
            message = "metadata cannot be limited below allOf, anyOf, oneOf and not"
            self.report((*place.path, "properties", "metadata"), message)
        for name, part in mapping_of(schema, "properties").items():
            self._check_nested(part or {}, place.at("properties", name))
        if isinstance(schema.get("items"), dict):
            self._check_nested(schema["items"], place.at("items"))

    def _check_keywords(self, schema: Schema, place: _Place) -> None:
        """Check what holds for each schema, also for those below junctors."""
        path = place.path
        kind = schema.get("type") or ""
        if kind and kind not in self.words.types:
            self.report((*path, "type"), f"type {quote(kind)} is not one of the supported types")
        for key in () if self.unsupported.isdisjoint(schema) else self.words.unsupported:
            if is_set(schema, key) and (schema[key] != {} or key in _POINTERS):
                self.report((*path, key), f"{key} is not supported")
        if schema.get("default") is not None and not place.takes_default:
            self.report((*path, "default"), "a default is not allowed in metadata")
        if place.in_meta and is_set(schema, _EMBEDDED):
            self.report((*path, _EMBEDDED), f"{_EMBEDDED} is not allowed in metadata")
        if isinstance(schema.get("items"), list) and schema["items"]:
            self.report((*path, "items"), "items must be one schema")
        rest = schema.get(_REST)
        if mapping_of(schema, "properties") and rest is not None and rest is not True:
            self.report((*path, _REST), f"{_REST} and properties exclude each other")
        if schema.get(_OPEN) is False:
            self.report((*path, _OPEN), f"{_OPEN} must be true or missing")
        if not _OF_LISTS.isdisjoint(schema):
            for fault in find_list_faults(schema, self.words.list_types, self.words.map_types):
                self.report((*path, *fault.path), fault.message)

    def report_undeclared(self, limits: Schema, schema: Schema | None, path: Path) -> None:
        """Report fields that junctors at the root limit and the schema does not declare."""
        for where, part in _parts(limits):
            self._report_undeclared_in(part, schema, (*path, *where))

    def _report_undeclared_in(self, limits: Schema, schema: Schema | None, path: Path) -> None:
        if schema is None:
            self.report(path, "the limits are on a field that the schema does not declare")
            return
        self.report_undeclared(limits, schema, path)
        if isinstance(limits.get("items"), dict):
            items = schema.get("items")
            declared = items if isinstance(items, dict) else None
            self._report_undeclared_in(limits["items"], declared, (*path, "items"))
        properties = mapping_of(schema, "properties")
        for name, part in mapping_of(limits, "properties").items():
            where = (*path, "properties", name)
            self._report_undeclared_in(part or {}, properties.get(name), where)


_DROPPED_IF_EMPTY: Final = frozenset(
    {"allOf", "anyOf", "definitions", "enum", "oneOf", "patternProperties"}
)
"""Keywords that the API server does not tell from missing ones if they are empty."""


def _is_plain(schema: Schema) -> bool:
    """Return whether a schema is one of a scalar without anything that can be wrong."""
    return schema.get("type") in _SCALARS and schema.keys() <= _PLAIN


def _is_int_or_string(schema: Any) -> bool:
    parts = list_of(schema, "anyOf")
    return [_drop_unset(part) for part in parts] == _INT_OR_STRING


def _drop_unset(schema: Any) -> Schema:
    return {
        key: value
        for key, value in mapping_of(schema).items()
        if key in _KNOWN | _REFUSED
        and is_set(schema, key)
        and not (key in _DROPPED_IF_EMPTY and not value)
    }


def _parts(limits: Schema) -> Iterator[tuple[Path, Schema]]:
    for key in _JUNCTORS:
        for number, part in enumerate(list_of(limits, key)):
            yield (key, number), part or {}
    if isinstance(limits.get("not"), dict):
        yield ("not",), limits["not"]


_NAMES = frozenset({"name", "generateName"})


def _limits_metadata(metadata: Schema) -> bool:
    """Return whether the schema of an object's metadata says more than its type and names."""
    properties: Any = mapping_of(metadata, "properties")
    if (properties and not properties.keys() <= _NAMES) or metadata.get(_REST) is not None:
        return True
    limits = _KNOWN - {"type", "default", "properties", "enum"}
    return bool(metadata.get("enum")) or not limits.isdisjoint(_drop_unset(metadata))
