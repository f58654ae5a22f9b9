"""Create and change structural schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capsmith.cel_text import is_transition
from capsmith.provider.model import Schema

_SCHEMA_MAPS = ("properties",)
_SCHEMAS = ("items", "additionalProperties")


def object_schema(
    properties: Mapping[str, Any],
    required: Iterable[str],
    description: str,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the schema of an object; ``extra`` are further keywords."""
    schema: dict[str, Any] = {
        "description": description,
        "type": "object",
        "properties": dict(sorted(properties.items())),
    }
    names = sorted(set(required))
    if names:
        schema["required"] = names
    return {**schema, **(extra or {})}


def listed(schema: Schema) -> dict[str, Any]:
    """Return ``schema`` with every list's type named (CRD-12): what is unnamed is atomic."""
    result = _mapped(schema, listed)
    if result.get("type") == "array":
        result.setdefault("x-kubernetes-list-type", "atomic")
    return result


def without_transitions(schema: Schema) -> dict[str, Any]:
    """Return ``schema`` without the validations that compare with the old object."""
    result = _mapped(schema, without_transitions)
    rules = result.pop("x-kubernetes-validations", [])
    kept = [rule for rule in rules if not is_transition(str(rule["rule"]))]
    if kept:
        result["x-kubernetes-validations"] = kept
    return result


def _mapped(schema: Schema, change: Any) -> dict[str, Any]:
    """Return a copy of ``schema`` with ``change`` done to the schemas directly below it."""
    result = dict(schema)
    for key in _SCHEMA_MAPS:
        if key in result:
            result[key] = {name: change(value) for name, value in result[key].items()}
    for key in _SCHEMAS:
        if isinstance(result.get(key), Mapping):
            result[key] = change(result[key])
    return result
