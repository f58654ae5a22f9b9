"""Build example values from structural schemas, for samples, templates and ClusterClasses."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

from capsmith.output.pattern import NoSample, sample
from capsmith.provider.fields import Field, Schema
from capsmith.provider_yaml.values import find_value_errors

FORMATS: Mapping[str, str] = {
    "bsonobjectid": "507f1f77bcf86cd799439011",
    "byte": "ZXhhbXBsZQ==",
    "cidr": "10.0.0.0/16",
    "creditcard": "4111111111111111",
    "date": "2030-01-01",
    "date-time": "2030-01-01T00:00:00Z",
    "datetime": "2030-01-01T00:00:00Z",
    "duration": "10m",
    "email": "someone@example.com",
    "hexcolor": "#336699",
    "hostname": "host.example.com",
    "ipv4": "192.0.2.10",
    "ipv6": "2001:db8::10",
    "isbn": "9780321751041",
    "isbn10": "0321751043",
    "isbn13": "9780321751041",
    "mac": "02:00:00:00:00:01",
    "quantity": "1Gi",
    "rgbcolor": "rgb(51,102,153)",
    "ssn": "123-45-6789",
    "uri": "https://example.com",
    "uuid": "9c2a4f5e-8d1b-4b7a-9a54-0d9a9d1c2f11",
    "uuid3": "9c2a4f5e-8d1b-3b7a-9a54-0d9a9d1c2f11",
    "uuid4": "9c2a4f5e-8d1b-4b7a-9a54-0d9a9d1c2f11",
    "uuid5": "9c2a4f5e-8d1b-5b7a-9a54-0d9a9d1c2f11",
}
"""Example values by the string format used in structural schemas."""
NAMES: Mapping[str, str] = {"image": "ubuntu-24.04"}
"""Example values by field name, for fields whose schema gives no hint."""
_WORD = "example"
_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TRIES = 200
_T = TypeVar("_T")


def build_example(schema: Schema) -> Any:
    """Return a value that ``schema`` accepts, as plain data.

    In order of preference: the example, the default, the first enum value, then the smallest value
    that type, format, pattern and limits allow.  Objects get only their required properties.  CEL
    rules are ignored.  For patterns that :mod:`capsmith.output.pattern` does not support, the value
    is ``example``.
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


def fit_example(schema: Schema, value: Any) -> Any:
    """Return ``value`` adapted to ``schema``, with invalid values replaced by examples.

    In objects, fields missing from the schema are removed, and required fields are added.
    """
    fields = schema.get("properties")
    if not isinstance(value, Mapping) or fields is None:
        return build_example(schema) if any(find_value_errors(value, schema)) else value
    is_open = schema.get("x-kubernetes-preserve-unknown-fields", False)
    found = {
        name: fit_example(fields[name], each) if name in fields else each
        for name, each in value.items()
        if name in fields or is_open
    }
    missing = [name for name in schema.get("required", ()) if name not in found and name in fields]
    return {**found, **{name: build_example(fields[name]) for name in missing}}


def build_field_example(field: Field) -> Any:
    """Return an example for a field, based on its schema if possible, else on its name.

    Names matter because a template with ``image: example`` looks finished but does not boot, while
    a realistic value shows users what to fill in.
    """
    value = build_example(field.schema)
    known = NAMES.get(field.name)
    is_known = (
        value == _WORD and known is not None and not any(find_value_errors(known, field.schema))
    )
    return known if is_known else value


def build_example_fields(fields: Sequence[Field], least: int = 0) -> dict[str, Any]:
    """Return an example value for each required field, by field name.

    If fewer than ``least`` fields are required, optional fields with a valid example are added in
    order.
    """
    chosen = {field.name: build_field_example(field) for field in fields if field.required}
    for field in fields:
        value = None if len(chosen) >= least or field.required else build_field_example(field)
        if value is not None and not any(find_value_errors(value, field.schema)):
            chosen[field.name] = value
    # Keeps the order of the fields.
    return {field.name: chosen[field.name] for field in fields if field.name in chosen}


def _string(schema: Schema) -> str:
    return _first_valid(schema, _strings(schema))


def _strings(schema: Schema) -> Iterator[str]:
    least = int(schema.get("minLength", 0))
    most = int(schema.get("maxLength", 512))
    if "pattern" in schema:
        try:
            yield sample(str(schema["pattern"]), least, most)
        except NoSample:
            yield _WORD
    known = FORMATS.get(str(schema.get("format", "")))
    if known is not None:
        yield known
    yield _WORD.ljust(least, "x")[:most]


def _integer(schema: Schema) -> int:
    # The limits of integers may be fractions, and YAML has infinite numbers.
    candidates = [math.ceil(value) for value in _numbers(schema, 1) if _is_finite(value)]
    return _first_valid(schema, candidates or [1])


def _is_finite(value: float) -> bool:
    # Integers of any size are finite, but only some of them are floats.
    return isinstance(value, int) or math.isfinite(value)


def _number(schema: Schema) -> int | float:
    found: float = _first_valid(schema, _numbers(schema, 0.5))
    is_whole = isinstance(found, int) or found.is_integer()
    return int(found) if is_whole else found


def _numbers(schema: Schema, step: float) -> Iterator[float]:
    """Yield small numbers within the limits; 1 if there are none.

    Exclusive limits are adjusted by ``step``.
    """
    low, high, multiple = (schema.get(key) for key in ("minimum", "maximum", "multipleOf"))
    value: float = 1
    if low is not None:
        value = low + step if schema.get("exclusiveMinimum") else low
    elif high is not None and high <= 1:
        value = high - step if schema.get("exclusiveMaximum") else high
    # A limit can be so many steps away that their number is no float.
    with contextlib.suppress(OverflowError):
        yield from _multiples(value, multiple, low, high) if multiple else ()
    yield value
    # The API server stores limits as 64-bit floats.
    with contextlib.suppress(OverflowError):
        yield from (float(bound) for bound in (low, high) if bound is not None)
        if low is not None and high is not None:
            yield low + (high - low) / 2


def _multiples(
    value: float, multiple: float, low: float | None, high: float | None
) -> Iterator[float]:
    """Yield small multiples of ``multiple`` from ``value`` or ``low`` on."""
    above = _quotient(value, multiple) * multiple
    fits = high is None or above <= high
    yield above if fits else (_quotient(value, multiple) - 1) * multiple
    first = 0 if low is None else _quotient(low, multiple)
    yield from ((first + count) * multiple for count in range(_TRIES))


def _quotient(value: float, step: float) -> int:
    """Return the smallest number of steps that add up to at least ``value``."""
    if isinstance(value, int) and isinstance(step, int):
        return -(-value // step)
    return math.ceil(value / step)


def _first_valid(schema: Schema, candidates: Iterable[_T]) -> _T:
    """Return the first candidate that the schema accepts, or the first one if it accepts none."""
    found = list(candidates)
    return next((value for value in found if not any(find_value_errors(value, schema))), found[0])


def _array(schema: Schema) -> list[Any]:
    items = schema.get("items", {})
    least = int(schema.get("minItems", 0))
    # One item even if none is required, because an empty list in a sample shows nothing.
    count = max(least, min(1, int(schema.get("maxItems", 1))))
    keys = schema.get("x-kubernetes-list-map-keys", ())
    distinct = schema.get("x-kubernetes-list-type") == "set"
    value = build_example(items)
    if distinct:
        return _distinct(items, value, count)
    if keys:
        properties = items.get("properties", {})
        columns = {
            key: _distinct(properties.get(key, {}), build_example(properties.get(key, {})), count)
            for key in keys
        }
        return [{**value, **{key: columns[key][row] for key in keys}} for row in range(count)]
    return [value] * count


def _distinct(schema: Schema, value: Any, count: int) -> list[Any]:
    """Return up to ``count`` different values, from the enum, numbers or free text."""
    choices = [choice for choice in schema.get("enum", ()) if choice is not None]
    if choices:
        return choices[:count]
    if isinstance(value, bool):
        return [True, False][:count]
    if isinstance(value, int | float):
        step = schema.get("multipleOf", 1)
        numbers = [value + sign * row * step for sign in (1, -1) for row in range(sign < 0, count)]
        return [number for number in numbers if not any(find_value_errors(number, schema))][:count]
    if isinstance(value, str) and "pattern" not in schema and "format" not in schema:
        texts = [value if row == 0 else f"{value}-{row + 1}" for row in range(count)]
        if not any(any(find_value_errors(text, schema)) for text in texts):
            return texts
    if isinstance(value, str):
        return list(islice(_variations(schema, value), count))
    return [value] * min(count, 1)


def _variations(schema: Schema, value: str) -> Iterator[str]:
    """Yield ``value`` and strings that differ from it in one or two characters."""
    yield value
    places = range(len(value) - 1, -1, -1)
    one = (_replaced(value, place, new) for place in places for new in _CHARACTERS)
    two = (_replaced(text, place, new) for text in tuple(one) for place in places for new in "0a")
    seen = {value}
    tried = chain(
        (_replaced(value, place, new) for place in places for new in _CHARACTERS),
        (f"{value}{new}" for new in _CHARACTERS),
        two,
    )
    # Limited, because a pattern may allow fewer different values than the list needs.
    for text in islice(tried, _TRIES * 10):
        if text not in seen and not any(find_value_errors(text, schema)):
            seen.add(text)
            yield text


def _replaced(text: str, place: int, new: str) -> str:
    return text[:place] + new + text[place + 1 :]


def _object(schema: Schema) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required = list(schema.get("required", ()))
    least = int(schema.get("minProperties", 0))
    names = required + [name for name in properties if name not in required]
    chosen = names[: max(len(required), least)]
    result = {name: build_example(properties[name]) for name in chosen if name in properties}
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        for number in range(len(result), least):
            result[f"{_WORD}-{number + 1}" if number else _WORD] = build_example(values)
    return result
