"""What a status needs by the author's schemas, beyond the contract: the manager fills it in."""

from __future__ import annotations

from typing import Any, Final

from capsmith.output.crd import status_schema
from capsmith.provider.model import Resource

ZEROS: Final = {
    **{"string": "", "boolean": False, "integer": 0, "number": 0},
    **{"array": [], "object": {}},
}
"""The values that the manager writes, by JSON type."""


def required_status(resource: Resource) -> tuple[tuple[str, str], ...]:
    """Return names and JSON types of the required fields, of those that the author requires."""
    if "required" not in resource.options.limits("status"):
        return ()
    schema = status_schema(resource, resource.storage_version) or {}
    fields = schema.get("properties", {})
    return tuple(
        (name, fields[name]["type"])
        for name in schema.get("required", ())
        if "type" in fields.get(name, {}) and "default" not in fields[name]
    )


def needs_messages(resource: Resource) -> bool:
    """Return whether the API server refuses conditions of a kind with an empty message."""
    if resource.contract_fields is None:
        return False
    schema: Any = status_schema(resource, resource.storage_version) or {}
    for key in ("properties", "conditions", "items", "properties", "message"):
        schema = schema.get(key, {})
    return bool(schema.get("minLength", 0))
