"""Schema validation that finds the same errors in a provider's objects as the API server."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sized
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}
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
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            yield f"{path}: neither a number nor text: {value!r}"
        return
    kind = schema.get("type", "")
    # In Python a bool is an int; in JSON it is not.
    wrong_bool = isinstance(value, bool) and kind != "boolean"
    if kind in _TYPES and (not isinstance(value, _TYPES[kind]) or wrong_bool):
        yield f"{path}: must be {kind}, not {value!r}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: must be one of {schema['enum']}, not {value!r}"
    for name, of, holds in _LIMITS:
        size = len(value) if isinstance(value, of) and isinstance(value, Sized) else None
        if size is not None and name in schema and not holds(size, schema[name]):
            yield f"{path}: {name} is {schema[name]}"
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from complaints(schema.get("items", {}), item, f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from _object_complaints(schema, value, path)


def with_defaults(schema: dict[str, Any], value: Any) -> Any:
    """Return a copy of ``value`` in which missing fields have the schema's defaults."""
    if isinstance(value, list):
        return [with_defaults(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    full = {key: inner["default"] for key, inner in properties.items() if "default" in inner}
    full |= value
    return {key: with_defaults(properties.get(key, {}), item) for key, item in full.items()}


def _object_complaints(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: is required"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    free = schema.get("x-kubernetes-preserve-unknown-fields") or others is True
    for name, item in value.items():
        inner = properties.get(name, others)
        if isinstance(inner, dict):
            yield from complaints(inner, item, f"{path}.{name}")
        elif not free:
            yield f"{path}.{name}: is not declared in the schema"
