"""Zero values that the manager writes into required fields of a status."""

from __future__ import annotations

from typing import Any, Final

from capsmith.provider.fields import Schema

ZEROS: Final = {
    **{"string": "", "boolean": False, "integer": 0, "number": 0},
    **{"array": [], "object": {}},
}
"""Zero value for each JSON type. The manager writes them to required status fields."""


def build_zero(schema: Schema) -> Any:
    """Return the zero value of a schema, as Go has it; None if some part of it has no type.

    The zero value of an object has the fields that it requires, without those that have a default.
    """
    zero = ZEROS.get(str(schema.get("type")))
    if zero != {}:
        return zero
    below = {name: build_zero(field) for name, field in list_needed_fields(schema)}
    return None if None in below.values() else below


def list_needed_fields(schema: Schema) -> list[tuple[str, Schema]]:
    """Return the name and schema of each property that is required and has no default."""
    properties = schema.get("properties") or {}
    return [
        (name, properties[name])
        for name in schema.get("required", ())
        if name in properties and "default" not in properties[name]
    ]
