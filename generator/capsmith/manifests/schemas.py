"""Walk structural schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.manifests.parse import list_of, mapping_of

Schema = Mapping[str, Any]
_OPEN = "x-kubernetes-preserve-unknown-fields"


def find(schema: Schema, path: str) -> Schema | None:
    """Return the schema of a field by its dotted path, or None where the field is not declared.

    ``[]`` after a name steps into the items of a list, ``{}`` into the values of a map.
    """
    current: Any = schema
    for part in path.split("."):
        name = part.rstrip("[]{}")
        current = mapping_of(current, "properties").get(name)
        if part.endswith("[]"):
            current = mapping_of(current, "items")
        elif part.endswith("{}"):
            current = mapping_of(current, "additionalProperties")
        if not isinstance(current, Mapping) or not current:
            return None
    return current if isinstance(current, Mapping) else None


def is_open(schema: Schema, path: str) -> bool:
    """Return whether an undeclared field is kept because a parent preserves unknown fields."""
    current: Any = schema
    for part in path.split("."):
        if mapping_of(current).get(_OPEN) is True:
            return True
        current = mapping_of(current, "properties").get(part.rstrip("[]{}"))
    return False


def required(schema: Schema, path: str) -> bool:
    """Return whether the last part of ``path`` is in the ``required`` of its parent."""
    parent, _, name = path.rpartition(".")
    holder = find(schema, parent) if parent else schema
    return holder is not None and name in list_of(holder, "required")


def describe(schema: Schema) -> str:
    """Return the JSON type of a schema, for messages: ``integer``, ``map``, ``list``."""
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = schema.get("type", "without a type")
    if kind == "object" and "additionalProperties" in schema:
        return "map"
    return "list" if kind == "array" else str(kind)


def walk(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every schema below ``schema`` and its path, itself first."""
    yield path, schema
    for name, part in mapping_of(schema, "properties").items():
        if isinstance(part, Mapping):
            yield from walk(part, f"{path}.{name}" if path else str(name))
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        part = schema.get(key)
        if isinstance(part, Mapping):
            yield from walk(part, path + mark)
