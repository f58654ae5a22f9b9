"""Check limits of values: bounds, patterns, and those combined by allOf, anyOf, oneOf and not.

In a structural schema such limits have no types, defaults or descriptions of their own: the field
beside them declares all that they mention.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.provider_yaml.fields import FieldLike, FieldSchema
from capsmith.provider_yaml.patterns import refusal
from capsmith.provider_yaml.plain import JUNCTORS, plain
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import did_you_mean, shown

_BOUNDS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_LIMITS = """
    format enum pattern minimum maximum exclusive_minimum exclusive_maximum multiple_of min_length
    max_length min_items max_items min_properties max_properties items properties required not_
"""
_ALLOWED = frozenset(_LIMITS.split()) | frozenset(JUNCTORS)


def check_limits(schema: Mapping[str, Any], place: Place) -> None:
    """Report ``schema-bounds`` and ``schema-pattern``."""
    for low, high in _BOUNDS:
        if low in schema and high in schema and schema[low] > schema[high]:
            message = f"{low} {schema[low]} is greater than {high} {schema[high]}"
            place.error("schema-bounds", message, "Swap them.", low)
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in schema and bound not in schema:
            message = f"{exclusive} requires {bound}"
            place.error("schema-bounds", message, f"Add {bound}.", exclusive)
    if schema.get("multipleOf", 1) <= 0:
        message = "multipleOf must be greater than 0"
        place.error("schema-bounds", message, "Remove it.", "multipleOf")
    if "pattern" in schema and (why := refusal(schema["pattern"])):
        place.error(
            "schema-pattern",
            f"the pattern is not a valid RE2 regular expression: {why}",
            "Use the syntax of the API server: https://github.com/google/re2/wiki/Syntax.",
            "pattern",
        )


def check_junctors(field: FieldSchema, schema: Mapping[str, Any], place: Place) -> None:
    """Report ``schema-junctor`` in the limits of a field with this ``schema``."""
    for key, below in _junctors(field):
        _check(below, schema, place.at(*key))


def _junctors(field: FieldSchema) -> Iterator[tuple[tuple[str | int, ...], FieldSchema]]:
    for name, key in JUNCTORS.items():
        for index, below in enumerate(getattr(field, name) or ()):
            yield (key, index), below
    if field.not_ is not None:
        yield ("not",), field.not_


def _check(limits: FieldSchema, outer: Mapping[str, Any], place: Place) -> None:
    for name in sorted(limits.model_fields_set - _ALLOWED):
        key = type(limits).model_fields[name].alias or name
        message = f"{shown(key)} cannot be in allOf, anyOf, oneOf or not"
        place.error_at_key("schema-junctor", message, "Move it to the field itself.", key)
    if isinstance(limits.required, bool):
        message = "`required` must be a list of properties here"
        place.error("schema-junctor", message, "Write the names in brackets.", "required")
    check_limits(plain(limits), place)
    check_junctors(limits, outer, place)
    if limits.items is not None:
        _below(limits.items, outer.get("items"), place.at("items"), {})
    declared = outer.get("properties", {})
    for name, below in (limits.properties or {}).items():
        _below(below, declared.get(name), place.at("properties", name), declared)


def _below(
    limits: FieldLike, outer: Mapping[str, Any] | None, place: Place, names: Mapping[str, Any]
) -> None:
    name = str(place.path[-1])
    if outer is None:
        message = f"the field that these limits apply to does not declare {shown(name)}"
        place.error_at_key("schema-junctor", message, did_you_mean(name, names))
    elif isinstance(limits, FieldSchema):
        _check(limits, outer, place)
    else:
        message = "limits cannot have a type: the field itself declares it"
        place.error("schema-junctor", message, "Write a mapping such as {minLength: 1}, or {}.")
