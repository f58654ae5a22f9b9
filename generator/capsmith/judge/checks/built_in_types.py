"""Compare the types of values in objects of Kubernetes with those that the API server decodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from capsmith.judge.checks.mismatches import Mismatch, drop_nulls, find_value_mismatches
from capsmith.judge.checks.value_schema import read_schema
from capsmith.manifests.parse import Manifest, mapping_of, may_have_null, text_of

KubernetesKinds = Mapping[str, Mapping[str, Any]]
_OF_ALL_KINDS = 3
"""Length of paths in metadata that are judged for objects of all kinds."""


def find_type_mismatches(
    manifest: Manifest, kinds: KubernetesKinds, is_complete: bool
) -> Iterator[Mismatch]:
    """Yield the values of an object that the API server cannot decode."""
    types = _find_types(manifest, kinds)
    if types is None:
        return
    for mismatch in find_value_mismatches(types, manifest.document, (), is_complete):
        # Those of all kinds are judged together.
        if mismatch.path[0] != "metadata" or len(mismatch.path) > _OF_ALL_KINDS:
            yield mismatch


def decode(manifest: Manifest, kinds: KubernetesKinds) -> Manifest:
    """Return an object of Kubernetes as the API server decodes it, and others as they are."""
    types = _find_types(manifest, kinds)
    if types is None or not may_have_null(manifest.document):
        return manifest
    return replace(manifest, document=drop_nulls(manifest.document, read_schema(types)))


def _find_types(manifest: Manifest, kinds: KubernetesKinds) -> Any:
    """Return the types of a kind's fields; None if the kind is not one of Kubernetes."""
    api_version = text_of(manifest.document, "apiVersion")
    return mapping_of(kinds.get(api_version)).get(manifest.kind)
