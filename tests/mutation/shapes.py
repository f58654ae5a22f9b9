"""Break schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capsmith.manifests.crds import Crd, CrdVersion, describe, find_field, walk_schema
from tests.mutation.mutants import (
    Document,
    Mutant,
    Scalar,
    Site,
    at,
    declare,
    drop,
    edited,
    operator,
    put,
    undeclare,
    version_path,
    with_version,
)

_EXTRA = "capsmithExtra"


@operator("schema-paths")
def paths(site: Site) -> Iterator[Mutant]:
    params = site.params
    for crd, version in site.context.versions():
        if params.when and find_field(version.schema, params.when) is None:
            continue
        first = params.parts[0]
        if find_field(version.schema, first.path) is None:
            yield declare(crd, version.name, first.path, _other(first.type))
            continue
        if params.needed:
            yield undeclare(crd, version.name, first.path)
        for part in params.parts:
            yield declare(crd, version.name, part.path, _other(part.type))
        for part in params.parts[1:]:
            yield undeclare(crd, version.name, part.path)
        for path in params.optional:
            yield _require(crd, version, path)
        yield from _subresource(site, crd, version)


@operator("control-plane-external")
def external(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        yield declare(crd, version.name, site.params.path, dict(Scalar))


def _other(kind: str) -> Document:
    return {"type": "integer"} if kind == "string" else dict(Scalar)


def _require(crd: Crd, version: CrdVersion, field: str) -> Mutant:
    path = crd.schema_path(version.name, field)

    def edit(document: Document) -> None:
        holder = at(document, path[:-2])
        holder["required"] = [*holder.get("required", []), path[-1]]

    return edited(crd.manifest, f"{version.name} requires {field}", edit)


def _subresource(site: Site, crd: Crd, version: CrdVersion) -> Iterator[Mutant]:
    name = site.params.subresource
    if name and name in version.subresources:
        place = (*version_path(crd, version.name), "subresources", name)
        yield edited(crd.manifest, f"no subresource {name}", drop(place))
        for key in site.params.subresource_values:
            yield edited(crd.manifest, f"{name}.{key} differs", put((*place, key), ".spec.other"))


@operator("schema-one-of-paths")
def one_of_paths(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        declared = [p for p in site.params.parts if find_field(version.schema, p.path)]
        if site.params.when and not find_field(version.schema, site.params.when):
            continue
        if declared:
            yield undeclare(crd, version.name, *(part.path for part in declared))
        for part in declared:
            yield declare(crd, version.name, part.path, _other(part.type))


@operator("schema-values")
def values(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        for part in site.params.values:
            if find_field(version.schema, part.path):
                yield declare(crd, version.name, part.path, _other(part.type))
                path = crd.schema_path(version.name, part.path)
                yield edited(
                    crd.manifest, f"{part.path} is nullable", put((*path, "nullable"), True)
                )


@operator("schema-map-list")
def map_list(site: Site) -> Iterator[Mutant]:
    params = site.params
    for crd, version in site.context.versions():
        for field in (params.path, *params.also):
            path = crd.schema_path(version.name, field)
            yield declare(crd, version.name, field, dict(Scalar))
            if find_field(version.schema, field) is None:
                items = {"type": "array", "items": {"type": "object"}}
                yield declare(crd, version.name, field, items)
                continue
            for key, value in (
                ("x-kubernetes-list-type", "atomic"),
                ("x-kubernetes-list-map-keys", ["other"]),
            ):
                yield edited(crd.manifest, f"{field}: {key}", put((*path, key), value))


@operator("schema-absent")
def absent(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        for path in site.params.paths:
            yield declare(crd, version.name, path, dict(Scalar))


@operator("schema-items")
def items(site: Site) -> Iterator[Mutant]:
    params = site.params
    for crd, version in site.context.versions():
        path = crd.schema_path(version.name, f"{params.path}[]")
        yield declare(crd, version.name, params.path, dict(Scalar))
        if find_field(version.schema, f"{params.path}[]") is None:
            some = {"type": "array", "items": {"type": "object"}}
            yield declare(crd, version.name, params.path, some)
            continue
        for key in params.required:
            left = [other for other in params.required if other != key]
            yield edited(crd.manifest, f"{key} not required", put((*path, "required"), left))
        for key in params.foreign:
            yield declare(crd, version.name, f"{params.path}[].{key}", dict(Scalar))


@operator("schema-list-types")
def list_types(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        found = [path for path, part in walk_schema(version.schema) if describe(part) == "list"]
        for field in found[:2]:
            place = (*crd.schema_path(version.name, field), "x-kubernetes-list-type")
            yield edited(crd.manifest, f"{field} has no list type", drop(place))
        if not found:
            some = {"type": "array", "items": {"type": "string"}}
            yield declare(crd, version.name, f"spec.{_EXTRA}", some)


@operator("schema-no-shape")
def no_shape(site: Site) -> Iterator[Mutant]:
    shape = {"type": "object", "properties": {key: dict(Scalar) for key in site.params.keys}}
    for crd, version in site.context.versions():
        yield declare(crd, version.name, f"spec.{_EXTRA}", shape)


@operator("schema-plain-names")
def plain_names(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        place = (*crd.schema_path(version.name, "spec"), "properties", "a.b")
        yield edited(crd.manifest, "spec has 'a.b'", put(place, dict(Scalar)))


@operator("crd-conversion")
def conversion(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        yield with_version(crd, lambda stored, other: _extra(other))


@operator("crd-lossy-versions")
def lossy_versions(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        if site.params.stored:
            yield with_version(crd, lambda stored, other: _extra(stored))
            continue
        yield with_version(crd, lambda stored, other: _extra(other))
        yield with_version(crd, lambda stored, other: _retyped(other))


def _spec(version: Document) -> dict[str, Any]:
    spec: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    properties: dict[str, Any] = spec.setdefault("properties", {})
    return properties


def _extra(version: Document) -> None:
    _spec(version)[_EXTRA] = dict(Scalar)


def _retyped(version: Document) -> None:
    name = next(iter(_spec(version)), _EXTRA)
    _spec(version)[name] = {"type": "number"}
