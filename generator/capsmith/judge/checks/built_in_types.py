"""Compare the types of values in objects of Kubernetes with those that the API server decodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.judge.checks.mismatches import Mismatch, find_value_mismatches
from capsmith.judge.checks.value_schema import ValueSchema, read_schema
from capsmith.manifests.parse import Manifest, mapping_of, may_have_null, text_of

KubernetesKinds = Mapping[str, Mapping[str, Any]]
_OF_ALL_KINDS = 3
"""Length of paths in metadata that are judged for objects of all kinds."""
_ZERO_VALUES: Mapping[str, Any] = {
    "array": [],
    "boolean": False,
    "integer": 0,
    "number": 0,
    "object": {},
    "quantity": 0,
    "string": "",
}


def find_type_mismatches(
    manifest: Manifest, kinds: KubernetesKinds, is_complete: bool
) -> Iterator[Mismatch]:
    """Yield the values of an object that the API server cannot decode."""
    types = _find_types(manifest, kinds)
    if types is None:
        return
    document = drop_nulls(manifest, kinds) if is_complete else manifest.document
    for mismatch in find_value_mismatches(types, document, (), is_complete):
        # Those of all kinds are judged together.
        if mismatch.path[0] != "metadata" or len(mismatch.path) > _OF_ALL_KINDS:
            yield mismatch


def drop_nulls(manifest: Manifest, kinds: KubernetesKinds) -> Any:
    """Return an object as the API server decodes it, in which a null is no value.

    Fields with null are absent, and items of lists and maps are the zero values of their types.
    """
    types = _find_types(manifest, kinds)
    if types is None or not may_have_null(manifest.document):
        return manifest.document
    return _decode(read_schema(types), manifest.document)


def _find_types(manifest: Manifest, kinds: KubernetesKinds) -> Any:
    """Return the types of a kind's fields; None if the kind is not one of Kubernetes."""
    api_version = text_of(manifest.document, "apiVersion")
    return mapping_of(kinds.get(api_version)).get(manifest.kind)


def _decode(part: ValueSchema | None, value: Any) -> Any:
    if part is None:
        return value
    if isinstance(value, list):
        return [_decode(part.items, _fill(part.items, each)) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in value.items():
        below = part.find_field(name)
        if name not in part.properties:
            each = _fill(part.additional, each)
        if each is not None:
            found[name] = _decode(below, each)
    return found


def _fill(part: ValueSchema | None, value: Any) -> Any:
    """Return the zero value in place of a null."""
    if value is not None or part is None:
        return value
    return 0 if part.is_int_or_string else _ZERO_VALUES.get(part.kind)
