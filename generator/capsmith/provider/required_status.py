"""The fields without which objects of a kind can have no status: the manager fills them in."""

from __future__ import annotations

from typing import Final

from capsmith.provider.crd import status_schema
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
