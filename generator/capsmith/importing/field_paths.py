"""Find fields of the contract that a CRD has under another name or at another path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.contract.model import ContractField
from capsmith.importing.kinds import Entry, Shapes, find_storage_version
from capsmith.importing.source import SourceCrd
from capsmith.manifests.parse import mapping_of
from capsmith.provider.field_paths import has_field, split_path

_REFERENCE = "infrastructure"
"""Begin of the names of fields that refer to the infrastructure of Machines."""
_HOLDERS = ((), ("machineTemplate",), ("machineTemplate", "spec"))
"""Objects in spec whose fields are searched, as names below ``spec``."""
_GROUPS = frozenset({"apiVersion", "apiGroup"})


def describe_field_paths(source: SourceCrd, shapes: Shapes) -> Entry:
    """Return ``contractFields`` with ``paths``, for the storage version and for those unlike it.

    Empty if no version of the CRD has a movable field of the contract elsewhere.
    """
    names = {each.name for each in source.crd.versions}
    found = {
        name: dict(_find_paths(source, name, shape.spec))
        for name, shape, _ in shapes
        if name in names
    }
    if not any(found.values()):
        return {}
    hub = find_storage_version(source.crd).name
    stored = found.pop(hub, {})
    entry: Entry = {"contractFields": {"paths": stored}} if stored else {}
    others = {name: paths for name, paths in found.items() if paths != stored}
    if others:
        entry["versions"] = {
            name: {"contractFields": {"paths": paths} if paths else {}}
            for name, paths in others.items()
        }
    return entry


def read_field_paths(entry: Mapping[str, Any], version: str) -> dict[str, str]:
    """Return the paths in a version, from what :func:`describe_field_paths` has returned."""
    own = mapping_of(entry, "versions", version) or entry
    return dict(mapping_of(own, "contractFields", "paths"))


def _find_paths(
    source: SourceCrd, version: str, fields: Mapping[str, ContractField]
) -> Iterator[tuple[str, str]]:
    (found,) = (each for each in source.crd.versions if each.name == version)
    spec = mapping_of(found.schema, "properties", "spec")
    for field in fields.values():
        for path in field.movable:
            old = f"spec.{field.name}.{path}"
            if has_field(spec, split_path(old)):
                continue
            wanted = field.schema
            for step in path.split("."):
                wanted = wanted["properties"][step]
            places = list(_find_places(spec, path.split(".")[-1], wanted))
            if len(places) == 1:
                yield old, places[0]


def _find_places(spec: Mapping[str, Any], name: str, wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of fields that hold the same as the field ``name`` of the contract."""
    for holder in _HOLDERS:
        steps = [step for each in holder for step in ("properties", each)]
        for other, schema in mapping_of(spec, *steps, "properties").items():
            if "properties" in wanted:
                is_found = other.startswith(_REFERENCE) and _is_reference(schema, wanted)
            else:
                is_found = other == name and mapping_of(schema).get("type") == wanted["type"]
            if is_found:
                yield ".".join(("spec", *holder, other))


def _is_reference(schema: Any, wanted: Mapping[str, Any]) -> bool:
    """Return whether a field can refer to an object as the reference ``wanted`` does.

    The property with the group depends on the contract.
    """
    needed = {"kind", "name"} | (_GROUPS & set(wanted["properties"]))
    return needed <= set(mapping_of(schema, "properties"))
