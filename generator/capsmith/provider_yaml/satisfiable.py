"""Detect schemas whose limits no value can satisfy, in cases that are easy to decide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

_Schema = Mapping[str, Any]


def explain_empty_range(schema: _Schema) -> str:
    """Explain why no number satisfies the limits in ``schema``; return "" if a number does.

    Limits that the API server rejects regardless, such as a minimum above the maximum, are not
    checked.
    """
    low, high = _find_number(schema, "minimum"), _find_number(schema, "maximum")
    if low is None or high is None or low > high:
        return ""
    first, last = Fraction(str(low)), Fraction(str(high))
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))
    step = _find_step(schema)
    if step is not None:
        first = step * (math.floor(first / step) + 1 if above else math.ceil(first / step))
        last = step * (math.ceil(last / step) - 1 if below else math.floor(last / step))
        is_empty = first > last
    else:
        is_empty = first == last and (above or below)
    return f"no value is between minimum {low} and maximum {high}" if is_empty else ""


def _find_step(schema: _Schema) -> Fraction | None:
    """Return the distance between two allowed numbers; None if they are arbitrarily close."""
    multiple = _find_number(schema, "multipleOf")
    step = Fraction(str(multiple)) if multiple is not None and multiple > 0 else None
    if schema.get("type") != "integer":
        return step
    # Among the multiples of 3/2, the integers are the multiples of 3.
    return Fraction(step.numerator) if step is not None else Fraction(1)


def _find_number(schema: _Schema, key: str) -> int | float | None:
    value = schema.get(key)
    # YAML has infinite numbers.
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def explain_few_properties(schema: _Schema) -> str:
    """Explain why no object can have ``minProperties`` properties; return "" if an object can."""
    # Alternatives such as anyOf have no type, and do not list all properties.
    properties = schema.get("properties") if schema.get("type") == "object" else None
    is_open = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
    least = schema.get("minProperties", 0)
    if not properties or is_open or least <= len(properties):
        return ""
    return f"minProperties is {least}, but there are only {len(properties)} properties"


def explain_many_required(schema: _Schema) -> str:
    """Explain why no object can have all required properties; return "" if an object can."""
    required, most = len(schema.get("required", ())), schema["maxProperties"]
    if required <= most:
        return ""
    return f"maxProperties is {most}, but {required} properties are required"


def explain_empty_set(schema: _Schema) -> str:
    """Explain why no list of type ``set`` satisfies the limits; return "" if one does."""
    items = schema.get("items", {})
    values = items.get("enum", [True, False] if items.get("type") == "boolean" else None)
    least = schema.get("minItems", 0)
    if schema.get("x-kubernetes-list-type") != "set" or values is None or least <= len(values):
        return ""
    return f"minItems is {least}, but there are only {len(values)} different items"
