"""Read the release series in metadata.yaml, and find the one that a release belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from capsmith.manifests.bundle import Artefact, Bundle
from capsmith.manifests.parse import Manifest, list_of, text_of

_GROUP = "clusterctl.cluster.x-k8s.io"
_RELEASE = re.compile(r"v?([0-9]{1,3})\.([0-9]{1,3})(?:\.[0-9]+.*)?")


class Series(NamedTuple):
    """A release series, such as v0.1."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class SeriesEntry(NamedTuple):
    """The entry of a release series in metadata.yaml."""

    number: int
    """Position in ``releaseSeries``."""
    contract: str


def list_entries(metadata: Manifest) -> list[tuple[int, dict[str, Any]]]:
    """Return the entries of ``releaseSeries`` with valid version numbers, and their positions."""
    return [
        (number, entry)
        for number, entry in enumerate(list_of(metadata.document, "releaseSeries"))
        if isinstance(entry, dict)
        and all(isinstance(entry.get(key), int) for key in ("major", "minor"))
    ]


def read_series(metadata: Manifest) -> Mapping[Series, SeriesEntry]:
    """Return the entries with valid version numbers, by their series."""
    return {
        Series(entry["major"], entry["minor"]): SeriesEntry(number, text_of(entry, "contract"))
        for number, entry in list_entries(metadata)
    }


def find_series(bundle: Bundle, metadata: Manifest) -> Series | None:
    """Return the series of the release, or None if its version is unknown.

    The version is the one that the user gave, or else the name of the folder with metadata.yaml.
    """
    folder = metadata.folder.name
    match = _RELEASE.fullmatch(bundle.release) or _RELEASE.fullmatch(folder)
    return Series(int(match[1]), int(match[2])) if match else None


def list_metadata(bundle: Bundle) -> tuple[Manifest, ...]:
    """Return the metadata.yaml files that may belong to the release.

    A file in a source tree does not if another one, in a folder above it, lists the release, or if
    it is of another program.
    """
    found = [
        each
        for each in bundle.files(Artefact.METADATA)
        if each.folder in bundle.component_folders or _is_of_clusterctl(each)
    ]
    listing = [each for each in found if find_series(bundle, each) in read_series(each)]
    return tuple(each for each in found if not any(_is_below(each, other) for other in listing))


def _is_of_clusterctl(metadata: Manifest) -> bool:
    """Return whether a file has anything of clusterctl's format; the name alone is common."""
    is_kind = metadata.kind == "Metadata" or metadata.api_group == _GROUP
    return is_kind or "releaseSeries" in metadata.document


def _is_below(metadata: Manifest, other: Manifest) -> bool:
    return other.folder in metadata.folder.parents
