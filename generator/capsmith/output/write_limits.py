"""Find limits in the author's schemas that a manager must respect when it writes objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from capsmith.output.crd import build_spec_schema, build_status_schema, select_contract_fields
from capsmith.output.zero_values import list_needed_fields
from capsmith.provider.fields import Schema
from capsmith.provider.model import Resource

_DEFAULTED: Final = ("reason", "message")
"""Fields of a condition that the manager leaves out if they are empty."""
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"


def list_required_status(resource: Resource) -> tuple[tuple[str, str], ...]:
    """Return (path, JSON type) for each status field that every object must have.

    An object comes before the fields that it requires, such as ``ref`` before ``ref.name``.  Empty
    unless the author requires any.  Fields with a default are left out.
    """
    if "required" not in resource.options.limits("status"):
        return ()
    schema = build_status_schema(resource, resource.storage_version) or {}
    return tuple(_list_required(schema, ""))


def _list_required(schema: Schema, prefix: str) -> Iterator[tuple[str, str]]:
    for name, field in list_needed_fields(schema):
        if "type" in field:
            yield prefix + name, field["type"]
            yield from _list_required(field, f"{prefix}{name}.")


def needs_messages(resource: Resource) -> bool:
    """Return whether the API server rejects this kind's conditions if their message is empty."""
    fields = _condition_schema(resource).get("properties", {})
    return bool(fields.get("message", {}).get("minLength", 0))


def list_required_in_conditions(resource: Resource) -> tuple[str, ...]:
    """Return which of ``reason`` and ``message`` the API server requires in conditions.

    The order is always the same.  Empty unless the author has declared a schema for the conditions.
    """
    required = _condition_schema(resource).get("required", ())
    return tuple(name for name in _DEFAULTED if name in required)


def _condition_schema(resource: Resource) -> dict[str, Any]:
    if resource.contract_fields is None:
        return {}
    schema: Any = build_status_schema(resource, resource.storage_version) or {}
    for key in ("properties", "conditions", "items"):
        schema = schema.get(key, {})
    return dict(schema)


def list_absent_fields(resource: Resource) -> tuple[str, ...]:
    """Return the paths of contract fields that a kind's storage version lacks.

    An example is ``status.conditions.severity``; lists are not part of a path.  The manager could
    write these fields, because the kind has their features.  Empty unless the author has changed
    the schema of a contract field, or has left one out.
    """
    if resource.contract_fields is None:
        return ()
    # No controller writes the spec of a template, and its fields are one level deeper.
    parts = ("status",) if resource.role.is_template else ("spec", "status")
    version = resource.storage_version
    built = {
        "spec": build_spec_schema(resource, version),
        "status": build_status_schema(resource, version) or {},
    }
    return tuple(
        path
        for part in parts
        for field in select_contract_fields(resource, part)
        for path in _find_absent(
            {field.name: field.schema}, built[part].get("properties", {}), f"{part}."
        )
    )


def _find_absent(
    contract: Mapping[str, Schema], own: Mapping[str, Any], prefix: str
) -> Iterator[str]:
    for name, schema in contract.items():
        if name not in own:
            yield prefix + name
            continue
        theirs, mine = _get_items(schema), _get_items(own[name])
        if (
            "properties" in theirs
            and "additionalProperties" not in mine
            and not mine.get(_PRESERVE)
        ):
            below = mine.get("properties", {})
            yield from _find_absent(theirs["properties"], below, f"{prefix}{name}.")


def _get_items(schema: Any) -> Mapping[str, Any]:
    while isinstance(schema.get("items"), Mapping):
        schema = schema["items"]
    found: Mapping[str, Any] = schema
    return found
