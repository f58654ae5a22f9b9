"""Convert CRDs of apiextensions.k8s.io/v1beta1, which Kubernetes served until v1.21."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from capsmith.manifests.parse import Manifest, list_of, mapping_of, text_of

_GROUP = "apiextensions.k8s.io"
_FORMER = f"{_GROUP}/v1beta1"
_SHARED = ("subresources", "additionalPrinterColumns")
"""Keys of ``spec`` that hold for all versions which do not have them."""
_OPEN = {"x-kubernetes-preserve-unknown-fields": True}
"""Schema of objects without a schema, which v1 requires."""


def convert_crd(manifest: Manifest) -> Manifest:
    """Return a CRD in the form of apiextensions.k8s.io/v1; other objects are returned unchanged.

    Schema, subresources and columns may be shared by all versions.  Unknown fields, which the API
    server kept unless told otherwise, are dropped: the schemas of v1 are complete.
    """
    document = manifest.document
    if text_of(document, "apiVersion") != _FORMER:
        return manifest
    spec = mapping_of(document, "spec")
    versions = list_of(spec, "versions")
    if not versions and text_of(spec, "version"):
        versions = [{"name": text_of(spec, "version"), "served": True, "storage": True}]
    converted = {
        **document,
        "apiVersion": f"{_GROUP}/v1",
        "spec": {**spec, "versions": [_convert_version(each, spec) for each in versions]},
    }
    return replace(manifest, document=converted)


def _convert_version(version: Any, spec: Mapping[str, Any]) -> Any:
    if not isinstance(version, Mapping):
        return version
    shared = {key: spec[key] for key in _SHARED if key in spec}
    if "schema" not in version:
        schema = mapping_of(spec, "validation", "openAPIV3Schema") or _OPEN
        shared["schema"] = {"openAPIV3Schema": {**schema, "type": "object"}}
    found = {**shared, **version}
    columns = list_of(found, "additionalPrinterColumns")
    if columns:
        found["additionalPrinterColumns"] = [_convert_column(each) for each in columns]
    return found


def _convert_column(column: Any) -> Any:
    if not isinstance(column, Mapping) or "JSONPath" not in column:
        return column
    others = {key: value for key, value in column.items() if key != "JSONPath"}
    return {**others, "jsonPath": column["JSONPath"]}
