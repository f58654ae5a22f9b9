"""Hypothesis strategies for values that a structural schema allows.

Validation rules in CEL are not evaluated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from hypothesis import strategies as st

from capsmith_runtime.testing.patterns import compile_pattern

Strategy = st.SearchStrategy[Any]
Schema = Mapping[str, Any]

_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "byte": ("YQ==", "ZXhhbXBsZQ=="),
    "cidr": ("10.0.0.0/16", "2001:db8::/32"),
    "date": ("2030-01-01",),
    "date-time": ("2030-01-01T00:00:00Z", "2031-12-31T23:59:59Z"),
    "duration": ("10m0s", "1h0m0s"),
    "email": ("someone@example.com",),
    "hostname": ("host.example.com", "host"),
    "ipv4": ("192.0.2.10", "192.0.2.11"),
    "ipv6": ("2001:db8::10",),
    "mac": ("02:00:00:00:00:01",),
    "uri": ("https://example.com", "/path"),
    "uuid": ("9c2a4f5e-8d1b-4b7a-9a54-0d9a9d1c2f11",),
}
_CHARACTERS: Final = "ab1 -_./:,é"
"""A few characters, so that separators are frequent and functions that split strings are tested."""
_LONGEST: Final = 8
_ITEMS: Final = 3


def values(schema: Schema) -> Strategy:
    """Return a strategy for values that the schema allows, with and without optional fields.

    Raises ValueError if Python does not support an RE2 pattern in the schema, unless the schema has
    an example.
    """
    found = _values(schema)
    return st.none() | found if schema.get("nullable") else found


def fields(schema: Schema, names: Collection[str]) -> Strategy:
    """Return a strategy for objects with all required and some of the optional ``names``."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    chosen = {
        name: values(inner)
        for name, inner in properties.items()
        if name in names or name in required
    }
    return st.fixed_dictionaries(
        {name: chosen[name] for name in required},
        optional={name: value for name, value in chosen.items() if name not in required},
    )


def _values(schema: Schema) -> Strategy:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers(0, 9) | st.sampled_from(["500m", "4Gi"])
    match schema.get("type"):
        case "object":
            return _object(schema)
        case "array":
            return _array(schema)
        case "boolean":
            return st.booleans()
        case "integer":
            return _integer(schema)
        case "number":
            low, high = schema.get("minimum", -100), schema.get("maximum", 100)
            return st.floats(low, high, width=32).filter(partial(_is_multiple, schema))
        case "string":
            return _text(schema)
    return st.sampled_from([1, "a", {"a": 1}])


def _object(schema: Schema) -> Strategy:
    least = schema.get("minProperties", 0)
    inner = schema.get("additionalProperties")
    if isinstance(inner, Mapping):
        most = max(least, min(schema.get("maxProperties", _ITEMS), _ITEMS))
        return st.dictionaries(
            st.text("ab-", min_size=1, max_size=3), values(inner), min_size=least, max_size=most
        )
    found = fields(schema, schema.get("properties", {}))
    return found.filter(lambda value: len(value) >= least)


def _array(schema: Schema) -> Strategy:
    least, keys = schema.get("minItems", 0), schema.get("x-kubernetes-list-map-keys")
    most = max(least, min(schema.get("maxItems", _ITEMS), _ITEMS))
    unique_by: Callable[[Any], str] | None = None
    if schema.get("x-kubernetes-list-type") == "set":
        unique_by = repr
    elif keys:
        unique_by = partial(_map_keys, keys)
    return st.lists(values(schema["items"]), min_size=least, max_size=most, unique_by=unique_by)


def _map_keys(keys: Sequence[str], item: Mapping[str, Any]) -> str:
    return repr([item.get(key) for key in keys])


def _integer(schema: Schema) -> Strategy:
    low, high = schema.get("minimum"), schema.get("maximum")
    least = math.ceil(low) if low is not None else min(-2, math.floor(high or 0))
    most = math.floor(high) if high is not None else max(least, 100)
    step = schema.get("multipleOf")
    if step:
        return st.integers(math.ceil(least / step), math.floor(most / step)).map(
            lambda count: count * step
        )
    return st.integers(least, most)


def _is_multiple(schema: Schema, value: float) -> bool:
    step = schema.get("multipleOf")
    return not step or math.isclose(value / step, round(value / step))


def _text(schema: Schema) -> Strategy:
    least = schema.get("minLength", 0)
    most = schema.get("maxLength", math.inf)
    if schema.get("format") in _FORMATS:
        return st.sampled_from(_FORMATS[schema["format"]])
    if "pattern" not in schema:
        return st.text(_CHARACTERS, min_size=least, max_size=min(most, max(least, _LONGEST)))
    try:
        pattern = compile_pattern(schema["pattern"])
    except re.error as error:
        if "example" in schema:
            return st.just(schema["example"])
        raise ValueError(f"give the field an example: {schema['pattern']}: {error}") from error
    return st.from_regex(pattern).filter(
        lambda text: text.isprintable() and least <= len(text) <= most
    )
