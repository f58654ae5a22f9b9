"""Check metadata.yaml as strictly as clusterctl reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.parse import Manifest, list_of, mapping_of
from capsmith.manifests.series import list_entries, list_metadata

_RELEASE = re.compile(r"v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-+].*)?")


_INTEGERS = range(-(2**31), 2**31)
"""The numbers that clusterctl can read."""


@check("metadata-there")
def check_metadata_there(context: Context) -> Iterator[Violation]:
    """CC-01: A release has a metadata.yaml."""
    components = context.bundle.files(Artefact.COMPONENTS)
    found = context.bundle.files(Artefact.METADATA)
    if components and not found:
        yield Violation(components[0], "no metadata.yaml beside the components")
    folders = context.bundle.component_folders
    beside = [each for each in found if each.folder in folders]
    # In a source tree, the file that becomes metadata.yaml may have any name elsewhere.
    if beside and len(beside) == len(found) and all(map(_is_misnamed, beside)):
        name = beside[0].base_name
        yield Violation(beside[0], f"the file is named {name}; clusterctl reads metadata.yaml")


def _is_misnamed(metadata: Manifest) -> bool:
    return metadata.base_name != "metadata.yaml"


@dataclass(frozen=True, slots=True)
class Value:
    """A field in metadata.yaml, and the only value that the rule allows."""

    field: str
    """Key in metadata.yaml."""
    value: str
    """The only value that the rule allows."""
    may_be_missing: bool = False
    """Whether the key may be missing or empty."""


@check("metadata-field", Value)
def check_metadata_field(context: Context, params: Value) -> Iterator[Violation]:
    """CC-02, CC-03: The field has the required value."""
    for metadata in list_metadata(context.bundle):
        found = metadata.document.get(params.field)
        if found != params.value and not (params.may_be_missing and not found):
            yield Violation(
                metadata,
                f"{params.field} is {found!r}; expected {params.value!r}",
                path=(params.field,),
            )


@dataclass(frozen=True, slots=True)
class RequiredField:
    """A field of metadata.yaml that must be set, to any value."""

    field: str


@check("metadata-field-there", RequiredField)
def check_metadata_field_there(context: Context, params: RequiredField) -> Iterator[Violation]:
    """CC-11: The required field of metadata.yaml is set."""
    for metadata in list_metadata(context.bundle):
        if not metadata.document.get(params.field):
            yield Violation(metadata, f"{params.field} is missing")


@check("metadata-series-there")
def check_metadata_series_there(context: Context) -> Iterator[Violation]:
    """CC-04: At least one release series is listed."""
    for metadata in list_metadata(context.bundle):
        if not list_of(metadata.document, "releaseSeries"):
            yield Violation(metadata, "releaseSeries is empty", path=("releaseSeries",))


@check("metadata-series-types")
def check_metadata_series_types(context: Context) -> Iterator[Violation]:
    """CC-05: Release series have integers and strings where clusterctl expects them."""
    for metadata in list_metadata(context.bundle):
        for number, entry in enumerate(list_of(metadata.document, "releaseSeries"), start=1):
            for key, kind in (("major", int), ("minor", int), ("contract", str)):
                value = mapping_of(entry).get(key)
                is_large = isinstance(value, int) and value not in _INTEGERS
                if not isinstance(value, kind) or isinstance(value, bool) or is_large:
                    bits = " of 32 bits" if is_large else ""
                    yield Violation(
                        metadata,
                        f"releaseSeries entry {number}: {key} is {value!r}; "
                        f"expected {f'an integer{bits}' if kind is int else 'a string'}",
                        path=("releaseSeries", number - 1, key),
                    )


@check("metadata-has-release")
def check_metadata_has_release(context: Context) -> Iterator[Violation]:
    """CC-06: The release, whose version is its folder's name, belongs to a series."""
    for metadata in list_metadata(context.bundle):
        folder = metadata.folder.name
        release = _RELEASE.fullmatch(context.bundle.release or folder)
        if not release:
            continue
        series = f"{release[1]}.{release[2]}"
        available = [_name(entry) for entry in _series(metadata)]
        if series not in available:
            yield Violation(
                metadata,
                f"{release[0]} is not in any of the series {', '.join(available) or '(none)'}",
                path=("releaseSeries",),
            )


@dataclass(frozen=True, slots=True)
class SeriesContracts:
    """Contract versions that release series may have, for the check ``metadata-contracts``."""

    current: tuple[str, ...]
    """Contract versions that clusterctl can install today."""
    former: tuple[str, ...]
    """Contract versions that only old series may have."""


@check("metadata-contracts", SeriesContracts)
def check_metadata_contracts(context: Context, params: SeriesContracts) -> Iterator[Violation]:
    """CC-07: The newest series can be installed, and no series has an unknown contract version."""
    for metadata in list_metadata(context.bundle):
        series = sorted(_series(metadata), key=lambda entry: (entry["major"], entry["minor"]))
        entries = metadata.listing("releaseSeries")
        for entry in series:
            newest = entry is series[-1]
            known = params.current if newest else params.current + params.former
            contract = entry.get("contract")
            # CC-05 reports values of other types.
            if isinstance(contract, str) and contract not in known:
                yield Violation(
                    metadata,
                    f"series {_name(entry)} has contract {contract!r}; "
                    f"expected one of {', '.join(known)}",
                    path=("releaseSeries", entries.index(entry), "contract"),
                )


@check("metadata-series-once")
def check_metadata_series_once(context: Context) -> Iterator[Violation]:
    """CC-09: Each major.minor is listed once, with one contract version."""
    for metadata in list_metadata(context.bundle):
        names = [_name(entry) for entry in _series(metadata)]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield Violation(
                metadata,
                f"series {name} is listed {names.count(name)} times",
                path=("releaseSeries",),
            )


def _series(metadata: Manifest) -> list[dict[str, Any]]:
    """Return the release series with valid version numbers."""
    return [entry for _, entry in list_entries(metadata)]


def _name(entry: dict[str, Any]) -> str:
    return f"{entry['major']}.{entry['minor']}"
