"""Check values, such as defaults and those of enums, against a schema, as the API server does."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from capsmith.provider_yaml.patterns import has_match
from capsmith.provider_yaml.string_formats import is_of_format
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import join_names, quote

Schema = Mapping[str, Any]
Mismatch = tuple[Path, str]

_TEXT: Schema = {"type": "string", "nullable": True}
_TEXTS: Schema = {"type": "object", "nullable": True, "additionalProperties": _TEXT}
_LABEL = {**_TEXT, "maxLength": 63, "pattern": r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"}
_EMBEDDED: Schema = {
    "apiVersion": {"type": "string", "minLength": 1},
    "kind": {"type": "string", "pattern": "^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$"},
    "metadata": {
        "type": "object",
        "nullable": True,
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            **dict.fromkeys(("name", "generateName", "namespace"), _TEXT),
            "labels": {**_TEXTS, "additionalProperties": _LABEL},
            "annotations": _TEXTS,
            "finalizers": {"type": "array", "nullable": True, "items": _TEXT},
            "ownerReferences": {"type": "array", "nullable": True},
            "generation": {"type": "integer", "nullable": True},
        },
    },
}
"""Fields that the API server declares in each embedded object."""
NUMERIC_LIMITS = ("minimum", "maximum", "multipleOf")
_LARGEST_FLOAT = 3.4028234663852886e38
_CLOSE = 1e-9
_MANY = 1_000_000


def find_value_errors(value: Any, schema: Schema, path: Path = ()) -> Iterator[Mismatch]:
    """Yield (path, reason) for each place where ``value`` violates ``schema``.

    All yielded paths start with ``path``, which is the path to ``value`` itself.
    """
    if value is None:
        if not schema.get("nullable"):
            yield path, "null is not allowed: nullable is not set"
        return
    # With a type, the API server compares the type only.
    either = schema.get("x-kubernetes-int-or-string") and schema.get("type") is None
    if either and not (is_of_type(value, "integer") or isinstance(value, str)):
        yield path, "it must be an integer or a string"
        return
    if (expected := schema.get("type")) and not is_of_type(value, expected):
        yield path, f"it must be {_article(expected)}"
        return
    if schema.get("enum") and make_json_key(value) not in map(make_json_key, schema["enum"]):
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
    """Return whether a YAML value has the JSON type ``name``. Booleans are not numbers."""
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    kinds = {"string": str, "boolean": bool, "object": dict, "array": list}
    return isinstance(value, kinds.get(name, ()))


def make_json_key(value: Any) -> Hashable:
    """Return a key that is the same for values that are equal in JSON, where ``true`` is not 1."""
    if isinstance(value, Mapping):
        return frozenset((key, make_json_key(below)) for key, below in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(make_json_key, value))
    return isinstance(value, bool), value


def _junctors(value: Any, schema: Schema, path: Path) -> Iterator[Mismatch]:
    for limits in schema.get("allOf", ()):
        yield from _find_nested_errors(value, limits, schema, path)
    for key, allowed, words in (
        ("anyOf", range(1, _MANY), "at least one"),
        ("oneOf", range(1, 2), "exactly one"),
    ):
        # The API server does not tell an empty list from none.
        if schema.get(key):
            fitting = sum(_fits(value, limits, schema) for limits in schema[key])
            if fitting not in allowed:
                yield path, f"it matches {fitting} of {key}, which requires {words}"
    if "not" in schema and _fits(value, schema["not"], schema):
        yield path, "it matches the schema in `not`"


def _fits(value: Any, limits: Schema, schema: Schema) -> bool:
    return not any(_find_nested_errors(value, limits, schema, ()))


def _find_nested_errors(
    value: Any, limits: Schema, schema: Schema, path: Path
) -> Iterator[Mismatch]:
    """Yield the errors of a value in limits of allOf, anyOf, oneOf or not."""
    form = limits.get("format")
    # Without a type beside it, a format is for texts and lists.
    if form and not limits.get("type") and not isinstance(value, str | list):
        yield path, f"it does not match the format {quote(form)}"
    yield from find_value_errors(value, _complete(limits, schema), path)


def _complete(limits: Schema, schema: Schema) -> Schema:
    """Return ``limits`` with the type in ``schema``, the schema of the field that has them.

    The limits themselves do not declare fields.
    """
    # Limits in allOf, anyOf, oneOf and not restrict a field that is declared elsewhere: they do not
    # declare nulls or further properties, so both are left to the field.
    complete = {**limits, "nullable": True, "x-kubernetes-preserve-unknown-fields": True}
    complete.pop("additionalProperties", None)
    for key in ("type", "x-kubernetes-int-or-string"):
        if key in schema:
            complete.setdefault(key, schema[key])
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
    """Follow ``numberValidator`` of kube-openapi, which validates limits with each value."""
    if misfit := explain_misfit(value, schema):
        yield path, f"it is {misfit}"
    for key in NUMERIC_LIMITS:
        if key in schema and (misfit := explain_misfit(schema[key], schema)):
            yield path, f"{key} {schema[key]} is {misfit}"
    native = _to_native(value, schema)
    low, high, step = (native[key] for key in NUMERIC_LIMITS)
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        yield path, f"it is below the minimum {schema['minimum']}"
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        yield path, f"it is above the maximum {schema['maximum']}"
    if step is not None and not _is_multiple(value, step):
        yield path, f"it is not a multiple of {schema['multipleOf']}"


def explain_misfit(number: int | float, schema: Schema) -> str:
    """Return what a value or a limit is not, by the type and format of ``schema``; "" if it fits.

    The API server refuses each value of a schema whose limits do not fit.
    """
    kind, form = schema.get("type"), schema.get("format")
    if kind == "integer":
        bits = 32 if form == "int32" else 64
        # An infinite float is not an integer either.
        is_whole = isinstance(number, int) or number.is_integer()
        fits = is_whole and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
        return "" if fits else f"not a {bits}-bit integer"
    fits = kind != "number" or form != "float" or abs(number) <= _LARGEST_FLOAT
    return "" if fits else "not a 32-bit float"


def _to_native(value: int | float, schema: Schema) -> dict[str, int | float | None]:
    """Return the limits as the API server compares them with ``value``.

    For a whole number it cuts off their fractions, whatever the type of the schema, and limits that
    do not fit into 64 bits become the smallest number.
    """
    limits = {key: schema.get(key) for key in NUMERIC_LIMITS}
    if isinstance(value, int):
        return {key: None if each is None else _to_int64(each) for key, each in limits.items()}
    return limits


def _to_int64(number: int | float) -> int:
    # Comparisons work for infinite floats, and for integers that are larger than any float.
    fits = -(2**63) <= number < 2**63
    return int(number) if fits else -(2**63)


def _is_multiple(value: int | float, step: int | float) -> bool:
    """Return whether the API server considers ``value`` a multiple of ``step``, with rounding."""
    if step <= 0:
        return False
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    # The same operations in the same order as in go-openapi/validate: another order would round
    # differently, and accept a default that the API server refuses.
    try:
        quotient = 1 / step * value if step < 1 else value / step
    except OverflowError:  # for the API server, an integer that is no float is infinite
        return False
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
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = schema.get("required") or ()
    if schema.get("x-kubernetes-embedded-resource"):
        properties, required = {**properties, **_EMBEDDED}, (*required, "apiVersion", "kind")
    for name in required:
        # A default of its own does not help, because the API server fills in no defaults inside a
        # default.
        if name not in value:
            yield path, f"the required {quote(name)} is missing"
    rest = schema.get("additionalProperties")
    for name, below in value.items():
        if name in properties:
            yield from find_value_errors(below, properties[name] or {}, (*path, name))
        elif isinstance(rest, Mapping):
            yield from find_value_errors(below, rest, (*path, name))
        elif rest is True and not _has_fields(below):
            continue
        elif rest is False or not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield (*path, name), f"{quote(name)} is not declared in properties"


def _has_fields(value: Any) -> bool:
    """Return whether a value contains fields, which ``additionalProperties: true`` prunes."""
    if isinstance(value, list):
        return any(map(_has_fields, value))
    return isinstance(value, Mapping) and bool(value)


def _size(size: int, schema: Schema, what: str, path: Path) -> Iterator[Mismatch]:
    if size < schema.get(f"min{what}", 0):
        yield path, f"it has fewer than min{what} {schema[f'min{what}']}"
    if size > schema.get(f"max{what}", size):
        yield path, f"it has more than max{what} {schema[f'max{what}']}"


def _repeats(items: list[Any]) -> bool:
    return len({make_json_key(item) for item in items}) < len(items)


def _article(name: str) -> str:
    words = {"string": "a string", "integer": "an integer", "number": "a number"}
    return words.get(name) or {"boolean": "a boolean", "array": "a list"}.get(name, "an object")
