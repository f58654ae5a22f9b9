"""Remove null keywords from schemas: for the API server, they are the same as missing ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from capsmith.manifests.parse import Manifest, is_mapping, mapping_of, may_have_null

_SCHEMAS = frozenset({"items", "additionalProperties", "not"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_MAPS = frozenset({"properties", "patternProperties", "definitions"})
_RULES = "x-kubernetes-validations"


def drop_null_keywords(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without null keywords; the schema itself if it has none."""
    kept = {key: _drop_in(key, value) for key, value in schema.items() if value is not None}
    same = len(kept) == len(schema) and all(kept[key] is schema[key] for key in kept)
    return schema if same else kept


def drop_nulls_of_crd(crd: Manifest) -> Manifest:
    """Return a CRD without null keywords in its schemas; the manifest itself if it has none."""
    if not may_have_null(crd.document):
        return crd
    document = _replace(crd.document, ("spec", "versions"), _drop_in_versions)
    document = _replace(document, ("spec", "validation", "openAPIV3Schema"), _drop_in_schema)
    return crd if document is crd.document else replace(crd, document=document)


def _drop_in(key: str, value: Any) -> Any:
    if key in _SCHEMAS:
        return _drop_in_schema(value)
    if key in _LISTS or key == _RULES:
        return _drop_in_list(value)
    if key in _MAPS and is_mapping(value):
        parts = {name: _drop_in_schema(part) for name, part in value.items()}
        return value if all(parts[name] is value[name] for name in parts) else parts
    return value


def _drop_in_schema(value: Any) -> Any:
    if value is None:
        return {}
    return drop_null_keywords(value) if is_mapping(value) else value


def _drop_in_list(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    parts = [_drop_in_schema(each) for each in value]
    return value if all(map(_is_same, parts, value)) else parts


def _drop_in_versions(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    parts = [_replace(each, ("schema", "openAPIV3Schema"), _drop_in_schema) for each in value]
    return value if all(map(_is_same, parts, value)) else parts


def _is_same(one: Any, other: Any) -> bool:
    return one is other


def _replace(document: Any, path: tuple[str, ...], change: Any) -> Any:
    """Return ``document`` with the value at ``path`` changed; the document itself if it is same."""
    key, *rest = path
    value = mapping_of(document).get(key)
    if value is None:
        return document
    changed = _replace(value, tuple(rest), change) if rest else change(value)
    return document if changed is value else {**document, key: changed}
