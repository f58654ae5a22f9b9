"""Example values from structural schemas: for samples, cluster templates and ClusterClasses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from capsmith.provider.model import Field, Schema
from capsmith.provider.pattern import NoSample, sample

_FORMATS: Mapping[str, str] = {
    "bsonobjectid": "507f1f77bcf86cd799439011",
    "byte": "ZXhhbXBsZQ==",
    "cidr": "10.0.0.0/16",
    "date": "2030-01-01",
    "date-time": "2030-01-01T00:00:00Z",
    "datetime": "2030-01-01T00:00:00Z",
    "duration": "10m",
    "email": "someone@example.com",
    "hostname": "host.example.com",
    "ipv4": "192.0.2.10",
    "ipv6": "2001:db8::10",
    "mac": "02:00:00:00:00:01",
    "quantity": "1Gi",
    "uri": "https://example.com",
    "uuid": "9c2a4f5e-8d1b-4b7a-9a54-0d9a9d1c2f11",
    "uuid3": "9c2a4f5e-8d1b-3b7a-9a54-0d9a9d1c2f11",
    "uuid4": "9c2a4f5e-8d1b-4b7a-9a54-0d9a9d1c2f11",
    "uuid5": "9c2a4f5e-8d1b-5b7a-9a54-0d9a9d1c2f11",
}
_WORD = "example"


def example(schema: Schema) -> Any:
    """Return a value that ``schema`` accepts, as plain data.

    Order: example, default, first of the enumeration, then the smallest thing that type, format,
    pattern and limits allow; of an object only what it requires.  CEL rules are not looked at, and
    where a pattern is beyond :mod:`capsmith.provider.pattern` the value is the word ``example``.
    """
    for key in ("example", "default"):
        if schema.get(key) is not None:
            return schema[key]
    choices = [choice for choice in schema.get("enum", ()) if choice is not None]
    if choices:
        return choices[0]
    if schema.get("x-kubernetes-int-or-string"):
        return _integer(schema)
    match schema.get("type"):
        case "string":
            return _string(schema)
        case "integer":
            return _integer(schema)
        case "number":
            return _number(schema)
        case "boolean":
            return True
        case "array":
            return _array(schema)
    return _object(schema)


def example_fields(fields: Sequence[Field]) -> dict[str, Any]:
    """Return the required ones of ``fields`` with an example value each."""
    return {field.name: example(field.schema) for field in fields if field.required}


def _string(schema: Schema) -> str:
    least = int(schema.get("minLength", 0))
    most = int(schema.get("maxLength", 512))
    if "pattern" in schema:
        try:
            return sample(str(schema["pattern"]), least, most)
        except NoSample:
            return _WORD
    known = _FORMATS.get(str(schema.get("format", "")))
    if known is not None:
        return known
    return _WORD.ljust(least, "x")[:most]


def _integer(schema: Schema) -> int:
    return math.ceil(_least(schema, 1))


def _number(schema: Schema) -> int | float:
    least = _least(schema, 0.5)
    return int(least) if float(least).is_integer() else least


def _least(schema: Schema, step: float) -> float:
    """Return a small number within the limits, ``step`` off an exclusive one, by default 1."""
    low, high, multiple = (schema.get(key) for key in ("minimum", "maximum", "multipleOf"))
    value: float = 1
    if low is not None:
        value = low + step if schema.get("exclusiveMinimum") else low
    elif high is not None and high <= 1:
        value = high - step if schema.get("exclusiveMaximum") else high
    if multiple:
        above = math.ceil(value / multiple) * multiple
        fits = high is None or above <= high
        value = above if fits else math.floor(value / multiple) * multiple
    return value


def _array(schema: Schema) -> list[Any]:
    items = schema.get("items", {})
    least = int(schema.get("minItems", 0))
    count = max(least, min(1, int(schema.get("maxItems", 1))))
    keys = schema.get("x-kubernetes-list-map-keys", ())
    distinct = schema.get("x-kubernetes-list-type") == "set"
    value = example(items)
    if distinct:
        return _distinct(items, value, count)
    if keys:
        properties = items.get("properties", {})
        columns = {
            key: _distinct(properties.get(key, {}), example(properties.get(key, {})), count)
            for key in keys
        }
        return [{**value, **{key: columns[key][row] for key in keys}} for row in range(count)]
    return [value] * count


def _distinct(schema: Schema, value: Any, count: int) -> list[Any]:
    """Return up to ``count`` different values, from enumeration, numbers or free text."""
    choices = [choice for choice in schema.get("enum", ()) if choice is not None]
    if choices:
        return choices[:count]
    if isinstance(value, bool):
        return [True, False][:count]
    if isinstance(value, int | float):
        return [value + row for row in range(count)]
    if isinstance(value, str) and "pattern" not in schema and "format" not in schema:
        return [value if row == 0 else f"{value}-{row + 1}" for row in range(count)]
    return [value] * min(count, 1)


def _object(schema: Schema) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required = list(schema.get("required", ()))
    least = int(schema.get("minProperties", 0))
    names = required + [name for name in properties if name not in required]
    chosen = names[: max(len(required), least)]
    result = {name: example(properties[name]) for name in chosen if name in properties}
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        for number in range(len(result), least):
            result[f"{_WORD}-{number + 1}" if number else _WORD] = example(values)
    return result
