"""Rows of the reference documentation: fields of a kind, as its schemas say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capsmith.provider.crd import spec_schema, status_schema
from capsmith.provider.model import Resource, Schema

_LIMITS = {
    "enum": "one of",
    "default": "default",
    "format": "format",
    "pattern": "pattern",
    "minimum": "at least",
    "maximum": "at most",
    "minLength": "characters at least",
    "maxLength": "characters at most",
    "minItems": "items at least",
    "maxItems": "items at most",
}


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field: its path below the object, type, whether it is required, limits, meaning."""

    path: str
    type: str
    required: bool
    limits: str
    description: str


def field_rows(resource: Resource) -> tuple[FieldRow, ...]:
    """Every field of ``spec`` and ``status`` in the storage version, in the schema's order."""
    version = resource.storage_version
    rows = list(_rows("spec", spec_schema(resource, version)))
    status = status_schema(resource, version)
    if status is not None:
        rows += _rows("status", status)
    return tuple(rows)


def _rows(path: str, schema: Schema) -> Iterator[FieldRow]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        yield FieldRow(
            path=f"{path}.{name}",
            type=_type(field),
            required=name in required,
            limits=_limits(field),
            description=str(field.get("description", "")),
        )
        yield from _rows(*_inner(f"{path}.{name}", field))


def _inner(path: str, schema: Schema) -> tuple[str, Schema]:
    """Where the fields below ``path`` are: in the object, in the items, in the values."""
    if schema.get("type") == "array":
        return _inner(f"{path}[]", schema.get("items", {}))
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return _inner(f"{path}.<key>", values)
    return path, schema


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return f"map of {_type(values)}"
    return kind


def _limits(schema: Schema) -> str:
    parts = []
    for key, words in _LIMITS.items():
        if key in schema:
            value = schema[key]
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            parts.append(f"{words} {text}")
    rules = schema.get("x-kubernetes-validations", ())
    parts += ["cannot be changed" for rule in rules if rule["rule"] == "self == oldSelf"]
    return "; ".join(parts)
