"""Check references in Cluster API's own objects, which change form between its API versions.

The schemas of these kinds are not part of a provider's release, so only references are known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.manifests.parse import Manifest, has_variable, list_of, mapping_of, text_of
from capsmith.yamldoc.compose import Path


@dataclass(frozen=True, slots=True)
class ReferencePlace:
    """A path to references in some kinds of Cluster API."""

    kinds: tuple[str, ...]
    """Kinds that have references at the path."""
    path: str
    """Path to the references."""
    other: str = ""
    """Path at which another API version of the kinds has them; empty if it is the same."""


@dataclass(frozen=True, slots=True)
class ReferenceForm:
    """A form of references, and where kinds of one API version have references of that form."""

    api_version: str
    """API version of the kinds."""
    keys: tuple[str, ...]
    """Keys that each reference needs."""
    places: tuple[ReferencePlace, ...]
    """Where the kinds have such references."""
    further: tuple[str, ...] = ()
    """Keys that a reference may have in addition."""


def find_wrong_references(
    manifest: Manifest, forms: tuple[ReferenceForm, ...]
) -> Iterator[tuple[Path, str]]:
    """Yield the path of each reference that the object's API version does not allow, and why."""
    api_version = text_of(manifest.document, "apiVersion")
    for form in forms:
        for place in form.places if form.api_version == api_version else ():
            if manifest.kind in place.kinds:
                yield from _at_place(manifest, form, place)


def _at_place(
    manifest: Manifest, form: ReferenceForm, place: ReferencePlace
) -> Iterator[tuple[Path, str]]:
    for path, reference in _list_mappings(manifest.document, place.path):
        yield from _wrong(path, reference, form)
    for path, _ in _list_mappings(manifest.document, place.other) if place.other else ():
        yield path, f"is not a field in {form.api_version}; use {place.path}"


def _wrong(
    path: Path, reference: Mapping[str, Any], form: ReferenceForm
) -> Iterator[tuple[Path, str]]:
    found = list(reference)
    unknown = [key for key in found if key not in (*form.keys, *form.further)]
    # A variable may stand for any key.
    if any(not isinstance(key, str) or has_variable(key) for key in found):
        return
    if unknown or not set(form.keys) <= set(found):
        expected = f"expected {', '.join(form.keys)} in {form.api_version}"
        message = f"is a reference with {', '.join(found)}; {expected}"
        yield path, message


def _list_mappings(document: Any, path: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the mappings at ``path``, in which ``[]`` stands for each item of a list."""
    head, _, rest = path.partition(".")
    name = head.removesuffix("[]")
    below: list[tuple[Path, Any]] = [((name,), mapping_of(document).get(name))]
    if name != head:
        below = [((name, number), each) for number, each in enumerate(list_of(document, name))]
    for step, value in below:
        if rest:
            yield from (((*step, *deeper), found) for deeper, found in _list_mappings(value, rest))
        elif isinstance(value, Mapping) and value:
            yield step, value
