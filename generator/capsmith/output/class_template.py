"""The fields that a template for ClusterClasses omits: the topology controller sets them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from capsmith.contract.model import ContractField
from capsmith.provider.model import Schema

_OF_TOPOLOGY = frozenset({"controlPlaneEndpoint", "replicas", "version"})
_BELOW = frozenset({"infrastructureRef", "after"})
"""What topology fills in inside other fields: the machines' template, the time of a rollout."""


def for_classes(fields: Iterable[ContractField]) -> list[ContractField]:
    """Return the fields of a control plane's template; none is required (CP-28)."""
    return [
        field._replace(schema=_without_topology(field.schema), required=False)
        for field in fields
        if field.name not in _OF_TOPOLOGY
    ]


def _without_topology(schema: Schema) -> dict[str, Any]:
    """Return ``schema`` without what topology fills in, at any depth of objects."""
    result = dict(schema)
    if "properties" in result:
        result["properties"] = {
            name: _without_topology(below)
            for name, below in result["properties"].items()
            if name not in _BELOW
        }
    if "required" in result:
        there = result.get("properties", {})
        # A part that was required only because of the reference is no longer needed.
        kept = [name for name in result["required"] if name in there and name != "spec"]
        result["required"] = kept
        if not kept:
            del result["required"]
    return result
