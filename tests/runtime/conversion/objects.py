"""Strategies for objects that are valid by a structural schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0x17F), max_size=8)
FORMATS: Mapping[str, Strategy] = {
    "date-time": st.sampled_from(["2024-05-01T10:00:00Z", "2025-01-31T23:59:59Z"]),
}
DURATIONS = st.sampled_from(["", "0s", "5m0s", "1h30m0s", "300s", "1.5s", "90000000h", "-1s", "x"])


def objects(schema: Mapping[str, Any]) -> Strategy:
    """Return a strategy for values that the schema allows, with and without optional keys."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return st.sampled_from([1, "2", "500m", "4Gi"])
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
            return st.sampled_from([0.5, 1.25, -3.5])
        case "string":
            return _text(schema)
    raise AssertionError(f"no objects of {schema}")


def _object(schema: Mapping[str, Any]) -> Strategy:
    properties = schema.get("properties", {})
    required = {name: objects(properties[name]) for name in schema.get("required", [])}
    optional = {name: objects(properties[name]) for name in properties if name not in required}
    for name, field in properties.items():
        if name.endswith("Timeout") and field["type"] == "string":
            optional[name] = DURATIONS
    found = st.fixed_dictionaries(required, optional=optional)
    if "additionalProperties" in schema:
        values = objects(schema["additionalProperties"])
        found = st.dictionaries(st.sampled_from(["a", "b", "zone-1", "é"]), values, max_size=3)
    least = schema.get("minProperties", 0)
    return found.filter(lambda value: len(value) >= least)


def _array(schema: Mapping[str, Any]) -> Strategy:
    keys = schema.get("x-kubernetes-list-map-keys")
    unique_by: Callable[[Any], Hashable] | None = None
    if schema.get("x-kubernetes-list-type") == "set":
        unique_by = repr
    elif keys:
        unique_by = partial(_map_key, keys)
    least, most = schema.get("minItems", 0), min(schema.get("maxItems", 3), 3)
    return st.lists(objects(schema["items"]), min_size=least, max_size=most, unique_by=unique_by)


def _map_key(keys: Sequence[str], item: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(item.get(key) for key in keys)


def _integer(schema: Mapping[str, Any]) -> Strategy:
    least, most = schema.get("minimum", -3), schema.get("maximum", 2**31 - 1)
    return st.integers(least, min(most, least + 9)) | st.just(most)


def _text(schema: Mapping[str, Any]) -> Strategy:
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    least, most = schema.get("minLength", 0), schema.get("maxLength", 8)
    if "pattern" in schema:
        pattern = re.compile(schema["pattern"], re.ASCII)
        known = [
            "Ready",
            "Paused",
            "a.example.com",
            "north",
            "v1.30.0",
            "10.0.0.0/24",
            "10.0.0.1",
            "/etc/x",
            "CriticalPart",
            "{{ .cluster.name }}-{{ .random }}",
        ]
        usable = [text for text in known if pattern.search(text) and least <= len(text) <= most]
        assert usable, pattern.pattern
        return st.sampled_from(usable)
    return TEXT.filter(lambda text: least <= len(text) <= most)
