"""Place a control plane's reference to the infrastructure of its Machines where its CRD has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from capsmith.output.crd import build_spec_schema, list_field_paths
from capsmith.provider.field_paths import split_path
from capsmith.provider.fields import Schema
from capsmith.provider.model import Resource

_PATHS: Final = {
    "v1beta1": "spec.machineTemplate.infrastructureRef",
    "v1beta2": "spec.machineTemplate.spec.infrastructureRef",
}
_KEYS: Final = {
    "v1beta1": ("apiVersion", "kind", "name", "namespace"),
    "v1beta2": ("apiGroup", "kind", "name"),
}
"""Properties of the contract's reference."""
_NEEDED = frozenset({"kind", "name"})


def place_machine_reference(resource: Resource, reference: Mapping[str, str]) -> dict[str, Any]:
    """Return the field in a control plane's spec that refers to its Machines' infrastructure.

    It is where the CRD has it, which may be another path than the contract's (CP-12, CP-13), and
    has those properties of ``reference`` that the CRD knows.
    """
    contract = resource.storage_version.contract.version
    usual = _PATHS[contract]
    path = dict(list_field_paths(resource)).get(usual, usual)
    spec = build_spec_schema(resource, resource.storage_version)
    if not _find_schema(spec, path):
        path = next(list_other_references(resource), path)
    known = _find_schema(spec, path).get("properties") or _KEYS[contract]
    found: Any = {key: value for key, value in reference.items() if key in known}
    for name in reversed(split_path(path)):
        found = {name: found}
    placed: dict[str, Any] = found
    return placed


def has_usual_reference(resource: Resource) -> bool:
    """Return whether a control plane has the reference where the contract has it."""
    version = resource.storage_version
    path = _PATHS[version.contract.version]
    return bool(_find_schema(build_spec_schema(resource, version), path))


def list_other_references(resource: Resource) -> Iterator[str]:
    """Yield the paths of fields that look like the contract's reference, and are elsewhere."""
    fields = build_spec_schema(resource, resource.storage_version).get("properties", {})
    template: Schema = fields.get("machineTemplate", {}).get("properties", {})
    for prefix, place in (("spec", fields), ("spec.machineTemplate", template)):
        for name, schema in place.items():
            if name.startswith("infrastructure") and _is_reference(schema):
                yield f"{prefix}.{name}"


def _is_reference(schema: Schema) -> bool:
    return set(schema.get("properties", ())) >= _NEEDED


def _find_schema(spec: Schema, path: str) -> Schema:
    """Return the schema of a field in ``spec``, or an empty one if there is no such field."""
    found: Schema = spec
    for name in split_path(path):
        found = found.get("properties", {}).get(name, {})
    return found
