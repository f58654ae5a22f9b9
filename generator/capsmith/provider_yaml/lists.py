"""Kubernetes' rules for lists: what an item is, and how two writers' lists are merged."""

from __future__ import annotations

from capsmith.provider_yaml.fields import FieldLike, FieldSchema
from capsmith.provider_yaml.plain import plain, required_names
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import did_you_mean, shown

_SCALARS = ("string", "integer", "number", "boolean")
_LIST_TYPE, _MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def check_list(field: FieldSchema, place: Place) -> None:
    """Report ``schema-no-items``, ``schema-list-set`` and ``schema-list-map-keys``."""
    if field.type == "array" and field.items is None:
        hint = "Add items, such as `items: {type: string}`."
        place.error("schema-no-items", "a list must declare its items", hint)
    if field.items is None:
        return
    if field.list_type in ("set", "map") and plain(field.items).get("nullable"):
        message = f"items of a {field.list_type} cannot be null"
        place.error("schema-list-nullable", message, "Remove nullable.", "items", "nullable")
    if field.list_type == "set":
        _set(field.items, place)
    if field.list_type == "map":
        _map(field, place)
    elif field.list_map_keys is not None:
        place.error_at_key(
            "schema-list-map-keys",
            f"{_MAP_KEYS} requires a list of type map",
            f"Add `{_LIST_TYPE}: map`.",
            _MAP_KEYS,
        )


def _set(items: FieldLike, place: Place) -> None:
    schema = plain(items)
    atomic_list = schema.get(_LIST_TYPE) == "atomic"
    atomic_object = schema.get("x-kubernetes-map-type") == "atomic"
    if schema.get("type") not in _SCALARS and not (atomic_list or atomic_object):
        place.error(
            "schema-list-set",
            "items of a set must be scalars or atomic",
            "Use a list of type map with keys, or `x-kubernetes-map-type: atomic` on the items.",
            _LIST_TYPE,
        )


def _map(field: FieldSchema, place: Place) -> None:
    if field.list_map_keys is None:
        hint = f"Name the properties that identify an item: `{_MAP_KEYS}: [name]`."
        place.error("schema-list-map-keys", f"a list of type map requires {_MAP_KEYS}", hint)
        return
    items = field.items
    if not isinstance(items, FieldSchema) or items.type != "object":
        hint = "Give the items `type: object` and properties."
        message = "items of a list of type map must be objects"
        place.error("schema-list-map-keys", message, hint, "items")
        return
    seen: set[str] = set()
    for index, key in enumerate(field.list_map_keys):
        key_place = place.at(_MAP_KEYS, index)
        if key in seen:
            message = f"duplicate entry {shown(key)}"
            key_place.error("schema-list-map-keys", message, "Keep one.")
        seen.add(key)
        _map_key(key, items, key_place)


def _map_key(key: str, items: FieldSchema, place: Place) -> None:
    properties = items.properties or {}
    if key not in properties:
        message = f"{shown(key)} is not a property of the items"
        place.error("schema-list-map-keys", message, did_you_mean(key, properties))
        return
    schema = plain(properties[key])
    if schema.get("type") not in _SCALARS:
        message = f"{shown(key)} identifies items, so it must be a scalar"
        place.error("schema-list-map-keys", message, f"Use one of {', '.join(_SCALARS)}.")
    if schema.get("nullable"):
        message = f"{shown(key)} identifies items, so it cannot be null"
        place.error("schema-list-map-keys", message, "Remove nullable.")
    if key not in required_names(items) and "default" not in schema:
        message = f"{shown(key)} identifies items, so it must be required or have a default"
        place.error("schema-list-map-keys", message, "Write `required: true` at the property.")
