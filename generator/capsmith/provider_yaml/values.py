"""Check defaults and enum values against their structural schema, as the API server does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.provider_yaml.patterns import has_match
from capsmith.provider_yaml.string_formats import is_of_format
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import join_names, quote

Schema = Mapping[str, Any]
Mismatch = tuple[Path, str]

_INT32 = range(-(2**31), 2**31)
_LARGEST_FLOAT = 3.4028234663852886e38
_CLOSE = 1e-9
_MANY = 1_000_000


def find_value_errors(value: Any, schema: Schema, path: Path = ()) -> Iterator[Mismatch]:
    """Yield each mismatch between ``value`` and ``schema``: its path, and the reason.

    Paths start with ``path``, the path to ``value`` itself.
    """
    if value is None:
        if not schema.get("nullable"):
            yield path, "null is not allowed: nullable is not set"
        return
    either = schema.get("x-kubernetes-int-or-string")
    if either and not (is_of_type(value, "integer") or isinstance(value, str)):
        yield path, "it must be an integer or a string"
        return
    if (expected := schema.get("type")) is not None and not is_of_type(value, expected):
        yield path, f"it must be {_article(expected)}"
        return
    if "enum" in schema and not any(is_same_json(value, allowed) for allowed in schema["enum"]):
        yield path, "it is not a value of the enum"
    if isinstance(value, str):
        yield from _text(value, schema, path)
    elif isinstance(value, list):
        yield from _list(value, schema, path)
    elif isinstance(value, Mapping):
        yield from _object(value, schema, path)
    elif not isinstance(value, bool):
        yield from _number(value, schema, path)
    yield from _junctors(value, schema, path)


def is_of_type(value: Any, name: str) -> bool:
    """Return whether a YAML value has the JSON type ``name``; booleans are not numbers."""
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    kinds = {"string": str, "boolean": bool, "object": dict, "array": list}
    return isinstance(value, kinds[name])


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values are equal in JSON, where ``true`` differs from 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _junctors(value: Any, schema: Schema, path: Path) -> Iterator[Mismatch]:
    for limits in schema.get("allOf", ()):
        yield from find_value_errors(value, _complete(limits, schema), path)
    for key, allowed, words in (
        ("anyOf", range(1, _MANY), "at least one"),
        ("oneOf", range(1, 2), "exactly one"),
    ):
        if key in schema:
            fitting = sum(_fits(value, limits, schema) for limits in schema[key])
            if fitting not in allowed:
                yield path, f"it matches {fitting} of {key}, which requires {words}"
    if "not" in schema and _fits(value, schema["not"], schema):
        yield path, "it matches the schema in `not`"


def _fits(value: Any, limits: Schema, schema: Schema) -> bool:
    return not any(find_value_errors(value, _complete(limits, schema)))


def _complete(limits: Schema, schema: Schema) -> Schema:
    """Return ``limits`` with the type in ``schema``, the schema of the field that has them.

    The limits themselves do not declare fields.
    """
    # Limits below allOf, anyOf, oneOf and not restrict what the field itself declares: they know
    # neither nulls nor further properties, so both are left to the field.
    complete = {**limits, "nullable": True, "x-kubernetes-preserve-unknown-fields": True}
    for key in ("type", "x-kubernetes-int-or-string"):
        if key in schema:
            complete[key] = schema[key]
    if "items" in limits:
        complete["items"] = _complete(limits["items"], schema.get("items", {}))
    declared = schema.get("properties", {})
    if "properties" in limits:
        complete["properties"] = {
            name: _complete(below, declared.get(name, {}))
            for name, below in limits["properties"].items()
        }
    return complete


def _text(value: str, schema: Schema, path: Path) -> Iterator[Mismatch]:
    if len(value) < schema.get("minLength", 0):
        yield path, f"it is shorter than minLength {schema['minLength']}"
    if len(value) > schema.get("maxLength", len(value)):
        yield path, f"it is longer than maxLength {schema['maxLength']}"
    if "pattern" in schema and not has_match(schema["pattern"], value):
        yield path, "it does not match the pattern"
    format = schema.get("format", "")
    if schema.get("type") == "string" and format and not is_of_format(format, value):
        yield path, f"it does not match the format {quote(format)}"


def _number(value: int | float, schema: Schema, path: Path) -> Iterator[Mismatch]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        yield path, f"it is below the minimum {low}"
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        yield path, f"it is above the maximum {high}"
    step = schema.get("multipleOf")
    if step and not _is_multiple(value, step):
        yield path, f"it is not a multiple of {step}"
    if schema.get("format") == "int32" and isinstance(value, int) and value not in _INT32:
        yield path, "it does not fit in 32 bits"
    if schema.get("format") == "float" and abs(value) > _LARGEST_FLOAT:
        yield path, "it does not fit in 32 bits"


def _is_multiple(value: int | float, step: int | float) -> bool:
    """Return whether the API server considers ``value`` a multiple of ``step``, with rounding."""
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    # The same operations in the same order as go-openapi/validate: another order rounds
    # differently, and a default that is accepted here would be refused there.
    quotient = 1 / step * value if step < 1 else value / step
    if not math.isfinite(quotient):
        return False
    difference = abs(quotient - math.trunc(quotient))
    return difference == 0 or (
        abs(quotient) >= 1 and difference / abs(quotient + math.trunc(quotient)) < _CLOSE
    )


def _list(value: list[Any], schema: Schema, path: Path) -> Iterator[Mismatch]:
    yield from _size(len(value), schema, "Items", path)
    if "items" in schema:
        for index, item in enumerate(value):
            yield from find_value_errors(item, schema["items"], (*path, index))
    if schema.get("x-kubernetes-list-type") == "set" and _repeats(value):
        yield path, "a set cannot contain duplicate items"
    if schema.get("x-kubernetes-list-type") == "map":
        keys = schema.get("x-kubernetes-list-map-keys", ())
        items = [item for item in value if isinstance(item, dict)]
        if _repeats([[item.get(key) for key in keys] for item in items]):
            yield path, f"two items have the same {join_names(keys)}"


def _object(value: Mapping[str, Any], schema: Schema, path: Path) -> Iterator[Mismatch]:
    yield from _size(len(value), schema, "Properties", path)
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        # A default of its own does not help: the API server fills in none inside a default.
        if name not in value:
            yield path, f"the required {quote(name)} is missing"
    rest = schema.get("additionalProperties")
    for name, below in value.items():
        if name in properties or rest is not None:
            yield from find_value_errors(below, properties.get(name, rest), (*path, name))
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield (*path, name), f"{quote(name)} is not declared in properties"


def _size(size: int, schema: Schema, what: str, path: Path) -> Iterator[Mismatch]:
    if size < schema.get(f"min{what}", 0):
        yield path, f"it has fewer than min{what} {schema[f'min{what}']}"
    if size > schema.get(f"max{what}", size):
        yield path, f"it has more than max{what} {schema[f'max{what}']}"


def _repeats(items: list[Any]) -> bool:
    # JSON values cannot be hashed, so each pair is compared; the limit keeps that affordable.
    return any(is_same_json(one, two) for i, one in enumerate(items[:200]) for two in items[:i])


def _article(name: str) -> str:
    words = {"string": "a string", "integer": "an integer", "number": "a number"}
    return words.get(name) or {"boolean": "a boolean", "array": "a list"}.get(name, "an object")
