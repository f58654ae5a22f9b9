"""Versions of a CRD: what converts them, what is lost, and fields that cannot be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.judge.rules.checks.registry import Context, Problem, check
from capsmith.manifests.crds import Crd, CrdVersion
from capsmith.manifests.parse import mapping_of
from capsmith.manifests.schemas import describe, walk

_OPEN = "x-kubernetes-preserve-unknown-fields"
_SHOWN = 8
"""Paths in one message."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Which version is the one that declares too much."""

    stored: bool
    """Whether fields of the stored version are lost, and not those of another served one."""


@check("crd-lossy-versions", Direction)
def lossy_versions(context: Context, params: Direction) -> Iterator[Problem]:
    """CRD-20, CRD-21: without conversion each field of spec is in both versions."""
    for crd in context.crds():
        if crd.manifest.mapping("spec", "conversion").get("strategy", "None") != "None":
            continue
        stored = next((version for version in crd.versions if version.storage), None)
        for version in crd.versions:
            if stored is None or not version.served or version is stored:
                continue
            source, target = (stored, version) if params.stored else (version, stored)
            yield from _lost(crd, source, target)


def _lost(crd: Crd, source: CrdVersion, target: CrdVersion) -> Iterator[Problem]:
    specs = [mapping_of(each.schema, "properties", "spec") for each in (source, target)]
    paths = list(_only_in(specs[0], specs[1], "spec"))
    if paths:
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        yield Problem(
            crd.manifest,
            f"{crd.kind}: {source.name} has {', '.join(paths[:_SHOWN])}{more}, which {target.name} "
            "does not have in that form, but nothing converts them",
            path=crd.schema_path(source.name, paths[0]),
        )


def _only_in(source: Any, target: Any, path: str) -> Iterator[str]:
    """Yield the topmost fields of ``source`` that ``target`` drops or cannot hold."""
    if describe(source) != describe(target):
        yield path
        return
    open_ = mapping_of(target).get(_OPEN) is True
    others = mapping_of(target, "properties")
    for name, part in mapping_of(source, "properties").items():
        if isinstance(others.get(name), Mapping):
            yield from _only_in(mapping_of(part), others[name], f"{path}.{name}")
        elif not open_ and "additionalProperties" not in target:
            yield f"{path}.{name}"
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        parts = [mapping_of(each, key) for each in (source, target)]
        if all(parts):
            yield from _only_in(parts[0], parts[1], path + mark)


@check("schema-plain-names")
def plain_names(context: Context) -> Iterator[Problem]:
    """CRD-22: no property name has a dot."""
    for crd, version in context.versions():
        for path, schema in walk(version.schema):
            for name in mapping_of(schema, "properties"):
                if "." in str(name):
                    yield Problem(
                        crd.manifest,
                        f"{crd.kind} {version.name}: {path or 'the object'} has a property "
                        f"named {name!r}",
                        path=crd.schema_path(version.name, path),
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
                crd.manifest,
                f"{crd.kind}: {names} differ in shape, but nothing converts them",
                path=("spec", "conversion"),
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
