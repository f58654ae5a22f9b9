"""Other valid values of spec fields, for tests that change an object as its user does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from capsmith_runtime.kube.client import JSON, ResourceType
from capsmith_runtime.testing.adjustments import find_other_values
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.schema_check import complaints


def find_other_field(
    manifests: Manifests, resource: ResourceType, spec: JSON, names: Iterable[str]
) -> tuple[str, Any] | None:
    """Return the first of the spec fields that has another valid value, with that value.

    Returns None if there is no such field.
    """
    rules = manifests.schema(resource.kind, resource.version)["properties"]["spec"]
    others = find_other_values(resource.kind)
    for name in names:
        for other in [others[name]] if name in others else _others(spec.get(name)):
            if not list(complaints(rules, {**spec, name: other}, "spec")):
                return name, other
    return None


def _others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    return [f"{value}2"] if isinstance(value, str) else []
