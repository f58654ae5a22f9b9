"""Decide whether the other keywords of an old schema already imply a new limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from capsmith.manifests.parse import list_of, mapping_of, texts_of
from capsmith.provider_yaml.patterns import explain_refusal, has_match

Schema = Mapping[str, Any]
_INT32 = (-(2**31), 2**31 - 1)
_OF_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "minimum": ("minimum", "exclusiveMinimum"),
    "exclusiveMinimum": ("minimum", "exclusiveMinimum"),
    "maximum": ("maximum", "exclusiveMaximum"),
    "exclusiveMaximum": ("maximum", "exclusiveMaximum"),
    "format": ("format",),
}
"""Keywords of ranges, each with those that decide together which numbers are refused."""
_OF_TEXTS = frozenset({"minLength", "maxLength", "pattern"})


def is_implied(old: Schema, new: Schema, keyword: str) -> bool:
    """Return whether a new limit refuses none of the values that the old schema accepts.

    Only enumerations, ranges of integers and fields that each object has are compared; the result
    is False if in doubt.
    """
    if keyword == "minProperties":
        limit = new.get(keyword)
        return isinstance(limit, int) and len(_find_always_set(old, new)) >= limit
    choices = list_of(old, "enum")
    if choices and keyword in _OF_TEXTS:
        return all(isinstance(each, str) and _accepts(new, keyword, each) for each in choices)
    if keyword not in _OF_NUMBERS or not old.get("type") == new.get("type") == "integer":
        return False
    limit = new.get(keyword)
    if isinstance(limit, float) and not math.isfinite(limit):
        return False
    is_listed = bool(choices) and all(type(each) is int for each in choices)
    before = (min(choices), max(choices)) if is_listed else _range(old)
    after = _range({key: new[key] for key in _OF_NUMBERS[keyword] if key in new})
    return after[0] <= before[0] and before[1] <= after[1]


def _find_always_set(old: Schema, new: Schema) -> set[str]:
    """Return the fields that each stored object has, and that the new schema does not drop."""
    before, after = mapping_of(old, "properties"), mapping_of(new, "properties")
    required = set(texts_of(old, "required"))
    # The API server fills in defaults before it counts.
    defaulted = {
        name for name in before if all("default" in mapping_of(s, name) for s in (before, after))
    }
    return (required | defaulted) & set(after)


def _accepts(schema: Schema, keyword: str, text: str) -> bool:
    limit = schema.get(keyword)
    if keyword == "pattern":
        return isinstance(limit, str) and not explain_refusal(limit) and has_match(limit, text)
    if not isinstance(limit, int):
        return False
    return len(text) >= limit if keyword == "minLength" else len(text) <= limit


def _range(schema: Schema) -> tuple[float, float]:
    """Return the lowest and the highest integer that a schema accepts."""
    low, high = _INT32 if schema.get("format") == "int32" else (-math.inf, math.inf)
    minimum, maximum = (_finite(schema.get(key)) for key in ("minimum", "maximum"))
    if minimum is not None:
        is_excluded = schema.get("exclusiveMinimum") is True
        low = max(low, math.floor(minimum) + 1 if is_excluded else math.ceil(minimum))
    if maximum is not None:
        is_excluded = schema.get("exclusiveMaximum") is True
        high = min(high, math.ceil(maximum) - 1 if is_excluded else math.floor(maximum))
    return low, high


def _finite(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None
