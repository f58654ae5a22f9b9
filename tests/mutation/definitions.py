"""Break CRDs in ways that the API server refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capsmith.yamldoc.compose import Path
from tests.mutation.mutants import Mutant, Site, edited, operator, put

_SPEC: Path = ("properties", "spec", "properties")
_FIELDS: dict[str, Any] = {
    "untyped": {"description": "no type"},
    "list": {"type": "array"},
    "null": {"type": "null"},
    "pattern": {"type": "string", "pattern": "("},
    "reference": {"type": "object", "$ref": "#/a"},
    "both": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "additionalProperties": {"type": "string"},
    },
    "limits": {"type": "string", "allOf": [{"type": "string"}]},
    "keyed": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"},
}
"""Fields whose schemas are not structural."""
_DEFAULTS: dict[str, Any] = {
    "typed": {"type": "integer", "default": "a"},
    "limited": {"type": "string", "maxLength": 1, "default": "ab"},
    "pruned": {"type": "object", "properties": {}, "default": {"a": 1}},
    "listed": {"type": "array", "items": {"type": "string"}, "default": [1]},
}
"""Fields whose defaults are invalid."""
_LIMITS: dict[str, Any] = {
    "narrow": {"type": "integer", "format": "int32", "maximum": 4294967295},
    "fraction": {"type": "integer", "minimum": 0.5},
    "multiple": {"type": "number", "format": "float", "multipleOf": 1e300},
}
"""Fields with limits of another type."""


@operator("crd-structural")
def structural(site: Site) -> Iterator[Mutant]:
    yield from _with_fields(site, _FIELDS)


@operator("crd-defaults")
def defaults(site: Site) -> Iterator[Mutant]:
    yield from _with_fields(site, _DEFAULTS)


@operator("crd-limits")
def limits(site: Site) -> Iterator[Mutant]:
    yield from _with_fields(site, _LIMITS)


@operator("crd-storage-served")
def storage(site: Site) -> Iterator[Mutant]:
    for crd in site.bundle.crds:
        for number, version in enumerate(crd.versions):
            if version.storage:
                place = ("spec", "versions", number, "served")
                yield edited(crd.manifest, f"{version.name} is not served", put(place, False))


def _with_fields(site: Site, fields: dict[str, Any]) -> Iterator[Mutant]:
    for crd in site.bundle.crds:
        for version in crd.versions:
            for name, schema in fields.items():
                place = (*crd.schema_path(version.name), *_SPEC, name)
                yield edited(crd.manifest, f"{version.name} has {name}", put(place, schema))


_CHANGES: tuple[tuple[Path, Any], ...] = (
    (("spec", "versions"), []),
    (("spec", "versions", 0, "storage"), "true"),
    (("spec", "versions", 0, "name"), "V1"),
    (("spec", "versions", 0, "schema"), {}),
    (("spec", "versions", 0, "additionalPrinterColumns"), [{"name": "A", "type": "string"}]),
    (("spec", "conversion"), {"strategy": "Webhook"}),
    (("spec", "names", "singular"), "A"),
    (("spec", "scope"), "Global"),
    (("metadata", "name"), "others"),
)


@operator("crd-definition")
def definition(site: Site) -> Iterator[Mutant]:
    for crd in site.bundle.crds:
        for path, value in _CHANGES:
            yield edited(crd.manifest, f"{'.'.join(map(str, path))} is {value}", put(path, value))
