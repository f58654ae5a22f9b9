"""Add the author's fields, and conditions, to the schema for machines in a pool's status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

from capsmith.contract.model import ContractField
from capsmith.provider.fields import Field

INSTANCES: Final = "instances"
"""Status field that lists a pool's machines; also the name of the feature (MP-06)."""
CONDITIONS: Final = "conditions"
_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_CONDITION: Final[Mapping[str, Any]] = {
    "type": {
        "description": "Type of the condition, in CamelCase.",
        "type": "string",
        "maxLength": 316,
        "pattern": _TYPE,
    },
    "status": {
        "description": "True, False or Unknown.",
        "type": "string",
        "enum": ["True", "False", "Unknown"],
    },
    "reason": {
        "description": "Machine-readable reason.",
        "type": "string",
        "minLength": 1,
        "maxLength": 1024,
    },
    "message": {
        "description": "Human-readable reason; may be empty.",
        "type": "string",
        "maxLength": 32768,
    },
    "lastTransitionTime": {
        "description": "Time at which the status last changed.",
        "type": "string",
        "format": "date-time",
    },
}
"""Schemas of a condition's fields, those of metav1.Condition without a generation."""


def add_instance_fields(field: ContractField, own: Iterable[Field]) -> ContractField:
    """Return ``field`` with the author's fields and conditions if it lists a pool's machines.

    All fields are optional, as everywhere in a status.
    """
    if field.name != INSTANCES:
        return field
    items = field.schema.get("items", {})
    added = {CONDITIONS: build_conditions_schema(), **{each.name: each.schema for each in own}}
    properties = {**items.get("properties", {}), **added}
    return field._replace(schema={**field.schema, "items": {**items, "properties": properties}})


def build_conditions_schema() -> dict[str, Any]:
    """Return the schema for one machine's conditions: metav1.Condition in every contract version.

    Core does not read them, so the older format is not needed.
    """
    return {
        "description": "Conditions of the machine, one for each type.",
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "One condition of the machine.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": deepcopy(dict(_CONDITION)),
        },
    }
