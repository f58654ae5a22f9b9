"""Order API versions and release series, and compare the author's fields between versions.

The storage version is the hub, as in controller-runtime: all other versions are compared with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from capsmith.provider.fields import Field, Schema
from capsmith.provider.model import ApiVersion, Provider, Resource
from capsmith.safetext import ReleaseVersion

if TYPE_CHECKING:

    from capsmith.safetext import VersionName


def rank_api_version(name: str) -> tuple[int, int, int]:
    """Return a sort key that orders API versions as Kubernetes does (GEN-03).

    Alpha sorts before beta, beta before GA, and equal stages sort by number.
    """
    # Only for names that the model accepted, such as `v1`, `v1alpha1` or `v1beta1`.
    major, *stage = re.findall(r"alpha|beta|\d+", name)
    if not stage:
        return 2, int(major), 0
    return int(stage[0] == "beta"), int(major), int(stage[1])


def rank_series(series: str) -> tuple[int, int]:
    """Return a sort key for a release series such as ``v0.1``: its major and minor numbers."""
    major, minor = series.removeprefix("v").split(".")
    return int(major), int(minor)


def get_preferred_version(resource: Resource) -> VersionName:
    """Return the API version that core uses (GEN-03).

    Core warns if a ClusterClass names another version.  All of a provider's versions have the same
    contract version, so the contract label lists every served version.  Versions with their own
    fields are never returned, because samples and templates have the storage version's fields.
    """
    others = resource.version_fields or {}
    served = (each.name for each in resource.versions if each.served and each.name not in others)
    return max(served, key=rank_api_version)


_TYPE_KEYS = (
    *("type", "nullable", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"),
)
"""Schema keys that determine the type of a value; limits are not included."""


class PartChanges(NamedTuple):
    """Differences in the author's spec or status fields between a version and the hub."""

    part: str
    """``spec`` or ``status``."""
    spoke: tuple[Field, ...]
    """All spec or status fields that the author declares in the version."""
    spoke_changes: tuple[Field, ...]
    """The version's fields that the hub lacks, defines with another type, or alone requires."""
    hub_changes: tuple[Field, ...]
    """The hub's fields that the version lacks, defines with another type, or does not require."""


class VersionChanges(NamedTuple):
    """Differences in the author's fields between a version and the hub, the storage version."""

    version: ApiVersion
    parts: tuple[PartChanges, ...]
    """Differences in spec and status. A part without differences is left out."""

    def part(self, name: str) -> PartChanges | None:
        """Return the differences in ``spec`` or ``status``, or None if there are none."""
        return next((each for each in self.parts if each.part == name), None)


def find_former_kubernetes(provider: Provider) -> ReleaseVersion:
    """Return a Kubernetes version one minor release before the version used in samples."""
    major, minor, patch = provider.kubernetes.split(".")
    return ReleaseVersion(f"{major}.{int(minor) - 1}.{patch}")


def find_core_release(provider: Provider) -> ReleaseVersion:
    """Return the core release that end-to-end tests run against, such as ``v1.14.2``."""
    return ReleaseVersion(provider.contracts[0].core_release)


def select_version(resource: Resource, version: ApiVersion) -> Resource:
    """Return a copy of the kind with the author's fields, CEL rules and columns for ``version``."""
    own = (resource.version_fields or {}).get(version.name)
    return resource if own is None else resource._replace(**own._asdict())


def compare_versions(resource: Resource) -> tuple[VersionChanges, ...]:
    """Return the differences from the hub for each version that the author's code must convert."""
    found = []
    for version in resource.versions:
        own = (resource.version_fields or {}).get(version.name)
        if own is None:
            continue
        parts = (
            compare_parts("spec", own.spec_fields, resource.spec_fields),
            compare_parts("status", own.status_fields, resource.status_fields),
        )
        differing = tuple(each for each in parts if each.spoke_changes or each.hub_changes)
        if differing:
            found.append(VersionChanges(version, differing))
    return tuple(found)


def compare_parts(part: str, spoke: tuple[Field, ...], hub: tuple[Field, ...]) -> PartChanges:
    """Compare a version's spec or status fields with the hub's, by name and type.

    A spec field that only the hub requires counts as changed: the author's code has to set it.
    """
    unfilled = _list_unfilled(spoke, hub) if part == "spec" else frozenset[str]()
    return PartChanges(part, spoke, _not_in(spoke, hub, unfilled), _not_in(hub, spoke, unfilled))


def is_needed(field: Field) -> bool:
    """Return whether a schema requires a field that has no default."""
    return field.required and "default" not in field.schema


def _list_unfilled(spoke: tuple[Field, ...], hub: tuple[Field, ...]) -> frozenset[str]:
    """Return the names of the hub's required fields that objects of the version may lack."""
    optional = {each.name for each in spoke if not each.required and "default" not in each.schema}
    return frozenset(each.name for each in hub if is_needed(each) and each.name in optional)


def has_same_type(one: Schema, other: Schema) -> bool:
    """Return whether two schemas have the same types, choices and required properties.

    Limits such as ``maxLength`` may differ.
    """
    if any(one.get(key) != other.get(key) for key in _TYPE_KEYS):
        return False
    # A value that only one version allows must be converted to a different one.
    if _choices(one) != _choices(other):
        return False
    # A property that only one version requires may be absent in the other, so the author's code
    # must fill it in, as for a property of another type.
    if set(one.get("required", ())) != set(other.get("required", ())):
        return False
    return _have_same_values(one, other, "properties") and all(
        _is_same(one.get(key), other.get(key)) for key in ("items", "additionalProperties")
    )


def _have_same_values(one: Schema, other: Schema, key: str) -> bool:
    first: Mapping[str, Any] = one.get(key) or {}
    second: Mapping[str, Any] = other.get(key) or {}
    return first.keys() == second.keys() and all(
        has_same_type(value, second[name]) for name, value in first.items()
    )


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return has_same_type(one, other)
    return bool(one == other)


def _choices(schema: Schema) -> set[str]:
    return {repr(choice) for choice in schema.get("enum", ())}


def _not_in(
    fields: tuple[Field, ...], others: tuple[Field, ...], unfilled: frozenset[str]
) -> tuple[Field, ...]:
    known = {field.name: field.schema for field in others if field.name not in unfilled}
    return tuple(
        field
        for field in fields
        if field.name not in known or not has_same_type(field.schema, known[field.name])
    )
