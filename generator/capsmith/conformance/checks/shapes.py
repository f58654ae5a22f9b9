"""Schemas of CRDs against the paths that core reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from capsmith.conformance.checks.registry import Context, Problem, check
from capsmith.conformance.crds import Crd, CrdVersion
from capsmith.conformance.manifests import list_of, mapping_of
from capsmith.conformance.schemas import describe, find, is_open, required, walk


@dataclass(frozen=True, slots=True)
class Part:
    """One path and the JSON type that core expects there."""

    path: str
    """Dotted; ``[]`` steps into a list's items, ``{}`` into a map's values."""
    type: str
    """``boolean``, ``string``, ``integer``, ``object``, ``map`` or ``list``."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Paths that belong together."""

    parts: tuple[Part, ...]
    needed: bool = False
    """Whether the first path has to be declared."""
    optional: tuple[str, ...] = ()
    """Paths that must not be required."""
    subresource: str = ""
    """Subresource that has to be there along with the first path."""
    subresource_values: Mapping[str, Any] = field(default_factory=dict)
    """What it has to say."""
    when: str = ""
    """A path; where it is not declared nothing else is looked at."""


@check("schema-paths", Parts)
def paths(context: Context, params: Parts) -> Iterator[Problem]:
    """Every path has the type that core reads; a wrong one is a hard error in core."""
    for crd, version in context.versions():
        where = f"{crd.kind} {version.name}"
        if params.when and find(version.schema, params.when) is None:
            continue
        present = find(version.schema, params.parts[0].path) is not None
        if not present:
            if params.needed and not is_open(version.schema, params.parts[0].path):
                expected = params.parts[0]
                yield Problem(
                    crd.manifest,
                    f"{where}: {expected.path} is not declared; expected {expected.type}",
                )
            continue
        for part in params.parts:
            yield from _typed(crd, version, part)
        for complaint in _subresource(version, params):
            yield Problem(crd.manifest, f"{where}: {complaint}")
        for path in params.optional:
            if required(version.schema, path):
                yield Problem(crd.manifest, f"{where}: {path} is required; expected optional")


def _subresource(version: CrdVersion, params: Parts) -> Iterator[str]:
    name = params.subresource
    if not name:
        return
    if name not in version.subresources:
        yield f"{params.parts[0].path} is declared, but subresources has no {name}"
        return
    found = mapping_of(version.subresources, name)
    for key, value in params.subresource_values.items():
        if found.get(key) != value:
            yield f"subresources.{name}.{key} is {found.get(key)!r}; expected {value!r}"


def _typed(crd: Crd, version: CrdVersion, part: Part) -> Iterator[Problem]:
    schema = find(version.schema, part.path)
    where = f"{crd.kind} {version.name}: {part.path}"
    if schema is None:
        if not is_open(version.schema, part.path):
            yield Problem(crd.manifest, f"{where} is not declared; expected {part.type}")
        return
    found = describe(schema)
    if found != part.type:
        yield Problem(crd.manifest, f"{where} is {found}; expected {part.type}")


@dataclass(frozen=True, slots=True)
class MapList:
    """A list whose items are found by keys."""

    path: str
    keys: tuple[str, ...]
    also: tuple[str, ...] = ()
    """Other paths where such a list can be, by the contract."""


@check("schema-map-list", MapList)
def map_list(context: Context, params: MapList) -> Iterator[Problem]:
    """A list is a map-list with the right keys; absent is fine."""
    for crd, version in context.versions():
        for path in (params.path, *params.also):
            schema = find(version.schema, path)
            complaint = "" if schema is None else _not_map_list(schema, params.keys)
            if complaint:
                yield Problem(crd.manifest, f"{crd.kind} {version.name}: {path} is {complaint}")


def _not_map_list(schema: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    if describe(schema) != "list":
        return f"{describe(schema)}; expected list"
    kind = schema.get("x-kubernetes-list-type")
    if (kind, list_of(schema, "x-kubernetes-list-map-keys")) == ("map", list(keys)):
        return ""
    return f"a list of type {kind or 'atomic'}; expected map by {', '.join(keys)}"


@dataclass(frozen=True, slots=True)
class Absent:
    """Paths that should not be declared."""

    paths: tuple[str, ...]


@check("schema-absent", Absent)
def absent(context: Context, params: Absent) -> Iterator[Problem]:
    """Paths with a meaning to core that the kind must not reuse, or should have left behind."""
    for crd, version in context.versions():
        for path in params.paths:
            if find(version.schema, path) is not None:
                yield Problem(
                    crd.manifest, f"{crd.kind} {version.name}: {path} is declared; expected none"
                )


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of each item, by whether they are required."""

    path: str
    required: tuple[str, ...]
    foreign: tuple[str, ...] = ()
    """Keys that show the shape of another contract."""


@check("schema-items", Keys)
def items(context: Context, params: Keys) -> Iterator[Problem]:
    """The items of a list have the keys of this contract's shape."""
    for crd, version in context.versions():
        schema = find(version.schema, params.path)
        if schema is None:
            continue
        where = f"{crd.kind} {version.name}: {params.path}"
        if describe(schema) != "list":
            yield Problem(crd.manifest, f"{where} is {describe(schema)}; expected list")
            continue
        item = find(version.schema, f"{params.path}[]") or {}
        missing = [key for key in params.required if key not in list_of(item, "required")]
        if missing:
            yield Problem(crd.manifest, f"{where}: items do not require {', '.join(missing)}")
        properties = mapping_of(item, "properties")
        foreign = [key for key in params.foreign if key in properties]
        if foreign:
            yield Problem(
                crd.manifest,
                f"{where}: items have {', '.join(foreign)}, as in another contract",
            )


@check("schema-list-types")
def list_types(context: Context) -> Iterator[Problem]:
    """CRD-12: every list says how it is merged."""
    for crd, version in context.versions():
        unmarked = [
            path
            for path, schema in walk(version.schema)
            if describe(schema) == "list" and "x-kubernetes-list-type" not in schema
        ]
        if unmarked:
            yield Problem(
                crd.manifest,
                f"{crd.kind} {version.name}: no x-kubernetes-list-type at {', '.join(unmarked)}",
            )


@dataclass(frozen=True, slots=True)
class Telltale:
    """Keys that together identify a shape."""

    keys: tuple[str, ...]


@check("schema-no-shape", Telltale)
def no_shape(context: Context, params: Telltale) -> Iterator[Problem]:
    """CRD-13: no reference names a version or a namespace."""
    for crd, version in context.versions():
        for path, schema in walk(version.schema):
            if path and set(params.keys) <= set(mapping_of(schema, "properties")):
                yield Problem(
                    crd.manifest,
                    f"{crd.kind} {version.name}: {path} is a reference with "
                    f"{', '.join(params.keys)}; expected apiGroup, kind, name",
                )


@check("crd-conversion")
def conversion(context: Context) -> Iterator[Problem]:
    """CRD-15: versions of different shape are converted."""
    for crd in context.crds():
        served = [version for version in crd.versions if version.served]
        shapes = [_plain(version.schema) for version in served]
        strategy = crd.manifest.mapping("spec", "conversion").get("strategy", "None")
        if strategy == "None" and any(shape != shapes[0] for shape in shapes[1:]):
            names = ", ".join(version.name for version in served)
            yield Problem(
                crd.manifest, f"{crd.kind}: {names} differ in shape, and nothing converts them"
            )


def _plain(schema: Any) -> Any:
    """A schema without its descriptions."""
    if isinstance(schema, Mapping):
        return {
            key: _plain(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema
