"""Schema validation that finds the same errors in a provider's objects as the API server."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sized
from typing import Any

from capsmith_runtime.testing.value_check import value_complaints

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}
_EMBEDDED = frozenset({"apiVersion", "kind", "metadata"})
"""Fields that the API server declares in each embedded object."""
_OPEN = "x-kubernetes-preserve-unknown-fields"
_LIMITS: tuple[tuple[str, type, Callable[[int, int], bool]], ...] = (
    ("minLength", str, operator.ge),
    ("maxLength", str, operator.le),
    ("minItems", list, operator.ge),
    ("maxItems", list, operator.le),
    ("minProperties", dict, operator.ge),
    ("maxProperties", dict, operator.le),
)


def complaints(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    """Yield a message for each value that an API server would reject or silently drop.

    A string that contains a clusterctl variable (``${NAME}``) is accepted as any value.
    """
    if isinstance(value, str) and "${" in value:
        return
    if value is None and schema.get("nullable"):
        return
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        if not _is_of_type(value, "integer") and not isinstance(value, str):
            yield f"{path}: neither a number nor text: {value!r}"
            return
    elif kind in _TYPES and not _is_of_type(value, kind):
        yield f"{path}: must be {kind}, not {value!r}"
        return
    choices = schema.get("enum")
    if choices and not any(_is_same(value, each) for each in choices):
        yield f"{path}: must be one of {choices}, not {value!r}"
    for name, of, holds in _LIMITS:
        size = len(value) if isinstance(value, of) and isinstance(value, Sized) else None
        if size is not None and name in schema and not holds(size, schema[name]):
            yield f"{path}: {name} is {schema[name]}"
    if isinstance(value, list):
        yield from _list_complaints(schema, value, path)
    elif isinstance(value, dict):
        yield from _object_complaints(schema, value, path)
    yield from _junctor_complaints(schema, value, path)


def with_defaults(schema: dict[str, Any], value: Any) -> Any:
    """Return a copy of ``value`` in which missing fields have the schema's defaults.

    Like the API server, treat null as missing where a field is not nullable.
    """
    if isinstance(value, list):
        return [with_defaults(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    full = {key: inner["default"] for key, inner in properties.items() if "default" in inner}
    full |= {
        key: item
        for key, item in value.items()
        if item is not None or key not in properties or properties[key].get("nullable")
    }
    return {key: with_defaults(properties.get(key, {}), item) for key, item in full.items()}


def _is_of_type(value: Any, kind: str) -> bool:
    # In Python a bool is an int; in JSON it is not, and 3.0 is the same as 3.
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _is_same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) is isinstance(other, bool)


def _list_complaints(schema: dict[str, Any], value: list[Any], path: str) -> Iterator[str]:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    known = []
    for index, item in enumerate(value):
        here = f"{path}[{index}]"
        yield from complaints(schema.get("items", {}), item, here)
        if keys and isinstance(item, dict):
            own = [item.get(key) for key in keys]
            if own in known:
                yield f"{here}: another item has the same {', '.join(keys)}"
            known.append(own)


def _junctor_complaints(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    for part in schema.get("allOf") or ():
        yield from _part_complaints(part, value, path)
    for name, is_enough in (("anyOf", bool), ("oneOf", lambda fitting: fitting == 1)):
        parts = schema.get(name) or ()
        fitting = sum(not any(_part_complaints(part, value, path)) for part in parts)
        if parts and not is_enough(fitting):
            yield f"{path}: matches {fitting} of the schemas in {name}"
    if schema.get("not") is not None and not any(_part_complaints(schema["not"], value, path)):
        yield f"{path}: matches the schema in not"


def _part_complaints(part: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    """Yield complaints on limits, which declare no fields."""
    limits = _opened(part)
    yield from complaints(limits, value, path)
    yield from value_complaints(limits, value, path)


def _opened(part: dict[str, Any]) -> dict[str, Any]:
    properties = {name: _opened(inner) for name, inner in part.get("properties", {}).items()}
    opened = {**part, "nullable": True, _OPEN: True, "properties": properties}
    return {**opened, "items": _opened(part["items"])} if "items" in part else opened


def _object_complaints(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: is required"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    free = schema.get(_OPEN) or others is True
    for name, item in value.items():
        if schema.get("x-kubernetes-embedded-resource") and name in _EMBEDDED - properties.keys():
            continue
        inner = properties.get(name, others)
        if isinstance(inner, dict):
            yield from complaints(inner, item, f"{path}.{name}")
        elif not free:
            yield f"{path}.{name}: is not declared in the schema"
