"""The validation rules of a structural schema, each with the schema that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from capsmith.manifests.parse import list_of, mapping_of
from capsmith.yamldoc.compose import Path

RULES = "x-kubernetes-validations"
_INNER = frozenset({RULES, "properties", "additionalProperties", "items"})
_TEXT = {"type": "string"}
_OF_EVERY_OBJECT = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}
"""The fields of an object itself that rules may read, however they are declared."""


class RulePlace(NamedTuple):
    """A schema with rules."""

    path: Path
    """From the root schema."""
    field: str
    """The same for people: dotted, with ``[]`` and ``{}``; empty for the root."""
    rules: list[Any]
    schema: Mapping[str, Any]
    """The types of the values that the rules read."""
    declared: Mapping[str, Any]
    """The same without the fields that every object has."""
    correlated: bool
    """Whether the API server can find the old value of what the rules are about."""


class _Step(NamedTuple):
    """A schema on the way down."""

    path: Path
    field: str
    correlated: bool

    def to(self, name: str, *path: str) -> _Step:
        return _Step((*self.path, *path), f"{self.field}{name}".removeprefix("."), self.correlated)


def rule_places(schema: Mapping[str, Any]) -> Iterator[RulePlace]:
    """Yield the places with rules below the root schema of a version, itself first."""
    if _is_deep(schema):
        yield from _below(schema, _Step((), "", True), True)


def _below(schema: dict[str, Any], here: _Step, is_object: bool) -> Iterator[RulePlace]:
    rules = list_of(schema, RULES)
    if rules:
        types = types_of(schema, is_object)
        yield RulePlace(here.path, here.field, rules, types, types_of(schema), here.correlated)
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, dict) else ():
        # The API server takes no rules in the metadata of an object.
        if _is_deep(part) and not (is_object and name == "metadata"):
            child = here.to(f".{name}", "properties", str(name))
            yield from _below(part, child, _is_embedded(part))
    values, items = schema.get("additionalProperties"), schema.get("items")
    if _is_deep(values):
        yield from _below(values, here.to("{}", "additionalProperties"), _is_embedded(values))
    if _is_deep(items):
        in_map = here.correlated and schema.get("x-kubernetes-list-type") == "map"
        child = here.to("[]", "items")._replace(correlated=in_map)
        yield from _below(items, child, _is_embedded(items))


def _is_deep(schema: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether there may be rules in a schema or below; most fields are plain."""
    return isinstance(schema, dict) and not _INNER.isdisjoint(schema)


def types_of(schema: Any, is_object: bool = False) -> dict[str, Any]:
    """Return what a schema says about types; ``is_object``: it has kind and metadata."""
    kept: dict[str, Any] = {
        key: schema[key] for key in ("type", "format") if isinstance(schema.get(key), str)
    }
    if schema.get("x-kubernetes-int-or-string") is True:
        kept["x-kubernetes-int-or-string"] = True
    if isinstance(schema.get("properties"), Mapping):
        kept["properties"] = {
            name: types_of(part, _is_embedded(part))
            for name, part in schema["properties"].items()
            if isinstance(name, str) and isinstance(part, Mapping)
        }
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            kept[key] = types_of(schema[key], _is_embedded(schema[key]))
    if is_object:
        kept["properties"] = {**kept.get("properties", {}), **_OF_EVERY_OBJECT}
    return kept


def _is_embedded(schema: Any) -> bool:
    return mapping_of(schema).get("x-kubernetes-embedded-resource") is True
