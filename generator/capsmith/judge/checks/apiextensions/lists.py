"""Check the list types, map types and list keys that server-side apply requires."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capsmith.judge.checks.apiextensions.model import Fault, Schema
from capsmith.manifests.parse import mapping_of, texts_of
from capsmith.yamldoc.quote import quote

_LIST, _MAP, _KEYS = (
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-list-map-keys",
)


def find_list_faults(
    schema: Schema, list_types: Sequence[str], map_types: Sequence[str]
) -> Iterator[Fault]:
    """Yield the reasons why the API server would reject a schema's list type or map type."""
    if schema.get("uniqueItems") is True:
        yield Fault(("uniqueItems",), "uniqueItems cannot be true")
    list_type, map_type = schema.get(_LIST), schema.get(_MAP)
    if map_type is not None:
        if schema.get("type") != "object":
            yield Fault(("type",), f"type must be object, because {_MAP} is set")
        if map_type not in map_types:
            yield Fault((_MAP,), f"{quote(map_type)} is not a map type")
    if list_type is not None:
        if schema.get("type") != "array":
            yield Fault(("type",), f"type must be array, because {_LIST} is set")
        elif list_type == "set":
            yield from _set(schema)
        if list_type not in list_types:
            yield Fault((_LIST,), f"{quote(list_type)} is not a list type")
    keys = texts_of(schema, _KEYS)
    if keys and list_type != "map":
        yield Fault((_LIST,), f"{_LIST} must be map, because {_KEYS} is set")
    if list_type == "map":
        yield from _map(schema, keys)
    if list_type in ("set", "map") and mapping_of(schema, "items").get("nullable") is True:
        yield Fault(("items", "nullable"), f"items of a {list_type} cannot be nullable")


def _set(schema: Schema) -> Iterator[Fault]:
    items = mapping_of(schema, "items")
    if items.get("type") == "array" and items.get(_LIST) not in (None, "atomic"):
        yield Fault(("items", _LIST), "lists in a set must be atomic")
    if items.get("type") == "object" and items.get(_MAP) != "atomic":
        yield Fault(("items", _MAP), "objects in a set must be atomic")


def _map(schema: Schema, keys: Sequence[str]) -> Iterator[Fault]:
    if not keys:
        yield Fault((_KEYS,), f"{_KEYS} must name a property of the items")
    items = mapping_of(schema, "items")
    if items.get("type") != "object":
        yield Fault(("items", "type"), "items of a list of type map must be objects")
        return
    if len(set(keys)) != len(keys):
        yield Fault((_KEYS,), f"{_KEYS} has duplicate entries")
    properties, required = mapping_of(items, "properties"), texts_of(items, "required")
    for key in keys:
        path = ("items", "properties", key)
        if key not in properties:
            yield Fault((_KEYS,), f"{quote(key)} is not a property of the items")
            continue
        part = mapping_of(properties, key)
        if part.get("type") in ("array", "object"):
            yield Fault((*path, "type"), f"{quote(key)} identifies items, so it must be a scalar")
        if key not in required and part.get("default") is None:
            message = f"{quote(key)} identifies items, so it must be required or have a default"
            yield Fault(path, message)
        if part.get("nullable") is True:
            message = f"{quote(key)} identifies items, so it cannot be nullable"
            yield Fault((*path, "nullable"), message)
