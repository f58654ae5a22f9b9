"""Convert the fields in provider.yaml to structural schemas for the API server."""

from __future__ import annotations

from typing import Any

from capsmith.provider_yaml.forms import FieldLike, FieldSchema, NameLimits, Validation

IMMUTABLE_RULE = "self == oldSelf"
IMMUTABLE_MESSAGE = "the value is immutable"
_FORMATS = {
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
}
JUNCTORS = {"all_of": "allOf", "any_of": "anyOf", "one_of": "oneOf"}
"""Field attributes that hold alternatives, with the corresponding schema keywords."""
_OWN = frozenset(
    {"required", "immutable", "items", "properties", "additional_properties", "validations"}
    | {*JUNCTORS, "not_"}
)


def is_required(field: FieldLike) -> bool:
    """Return whether the author requires the field, with ``string!`` or ``required: true``."""
    if isinstance(field, str):
        return field.endswith("!")
    return field.required is True


def convert_field(field: FieldLike) -> dict[str, Any]:
    """Return the structural schema for one field.

    Whether the field is required is stored in its parent's schema.  Nested objects list their
    required properties, ``immutable`` becomes a CEL rule, and every list has a list type, which is
    ``atomic`` by default.
    """
    if isinstance(field, str):
        return _shorthand(field)
    schema: dict[str, Any] = {
        field.find_key(name): _value(getattr(field, name))
        for name in type(field).model_fields
        if name in field.model_fields_set and name not in _OWN and _is_set(field, name)
    }
    if field.type == "array":
        schema.setdefault("x-kubernetes-list-type", "atomic")
    if field.items is not None:
        schema["items"] = convert_field(field.items)
    if field.properties is not None:
        schema["properties"] = {
            name: convert_field(below) for name, below in field.properties.items()
        }
    if names := list_required(field):
        schema["required"] = names
    if field.additional_properties is not None:
        schema["additionalProperties"] = convert_field(field.additional_properties)
    for name, key in JUNCTORS.items():
        if getattr(field, name) is not None:
            schema[key] = [_limits(below) for below in getattr(field, name)]
    if field.not_ is not None:
        schema["not"] = _limits(field.not_)
    rules = [convert_rule(rule) for rule in field.validations or ()]
    if field.immutable:
        rules.append({"rule": IMMUTABLE_RULE, "message": IMMUTABLE_MESSAGE})
    if rules:
        schema["x-kubernetes-validations"] = rules
    return schema


def _limits(field: FieldLike) -> dict[str, Any]:
    """Return the schema of an alternative, without types and merge strategies.

    The field that has the alternative declares these.
    """
    schema = convert_field(field)
    if isinstance(field, str):
        return schema
    if field.items is not None:
        schema["items"] = _limits(field.items)
    if field.properties is not None:
        schema["properties"] = {name: _limits(below) for name, below in field.properties.items()}
    # Unlike a field, limits may require properties that they do not mention themselves.
    if isinstance(field.required, tuple):
        schema["required"] = list(field.required)
    return schema


def list_required(field: FieldSchema) -> list[str]:
    """Return the names of the required properties, in the author's order."""
    named = field.required if isinstance(field.required, tuple) else ()
    properties = field.properties or {}
    flagged = {name for name, below in properties.items() if is_required(below)}
    return [name for name in properties if name in flagged or name in named]


def convert_name_limits(limits: NameLimits) -> dict[str, Any]:
    """Return the schema for ``metadata.name`` with the author's limits."""
    return {"type": "string", **limits.model_dump(mode="json", by_alias=True, exclude_none=True)}


def convert_rule(rule: Validation) -> dict[str, Any]:
    """Return a CEL rule as plain data, without the keys that the author left out."""
    return rule.model_dump(by_alias=True, exclude_none=True)


def _shorthand(text: str) -> dict[str, Any]:
    word = text.removesuffix("!")
    item = word.removesuffix("[]")
    schema: dict[str, Any] = dict(_FORMATS.get(item, {"type": item}))
    if item == word:
        return schema
    return {"type": "array", "x-kubernetes-list-type": "atomic", "items": schema}


def _is_set(field: FieldSchema, name: str) -> bool:
    return name in ("default", "example") or getattr(field, name) is not None


def _value(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
