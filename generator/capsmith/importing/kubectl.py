"""Names, categories and columns by which kubectl shows the kinds of CRDs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capsmith.importing.normal import columns_of
from capsmith.importing.words import text
from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import list_of, mapping_of, text_of, texts_of

Entry = dict[str, Any]
_CATEGORY = "cluster-api"
_COLUMN_KEYS = ("name", "type", "jsonPath", "priority", "description")


def names_of(crd: Crd, key: str) -> list[str]:
    """Return the short names or categories of a CRD."""
    return [name.strip() for name in texts_of(crd.manifest.document, "spec", "names", key)]


def categories_of(crd: Crd) -> Entry:
    """Return the categories of a CRD, and whether it is in that of Cluster API."""
    found = names_of(crd, "categories")
    own = list(dict.fromkeys(name for name in found if name != _CATEGORY))
    entry: Entry = {"categories": own} if own else {}
    return entry if _CATEGORY in found else {**entry, "contractCategory": False}


def has_contract_columns(crd: Crd, made: Mapping[str, Any]) -> bool:
    """Return whether each served version has all columns of what capsmith generates for it."""
    generated = {text_of(each, "name"): each for each in list_of(made, "spec", "versions")}
    return all(
        column in columns_of(version)
        for version in list_of(crd.manifest.document, "spec", "versions")
        if mapping_of(version).get("served")
        for column in columns_of(generated.get(text_of(version, "name"), {}))
    )


def own_columns(version: Mapping[str, Any], made: Mapping[str, Any]) -> list[Entry]:
    """Return the columns of a version that capsmith does not generate without an author."""
    generated = columns_of(made)
    kept = []
    for column, plain in zip(_columns(version), columns_of(version), strict=True):
        if plain not in generated:
            entry = {key: column[key] for key in _COLUMN_KEYS if column.get(key)}
            if isinstance(entry.get("description"), str):
                entry["description"] = text(entry["description"])
            entry["jsonPath"] = text_of(column, "jsonPath").strip()
            others = {key: value for key, value in column.items() if key not in _COLUMN_KEYS}
            kept.append({**entry, **others})
    return kept


def without_columns(crd: Mapping[str, Any]) -> dict[str, Any]:
    """Return a generated CRD without columns."""
    versions: Iterable[Any] = list_of(crd, "spec", "versions")
    kept = [
        {key: value for key, value in mapping_of(each).items() if key != "additionalPrinterColumns"}
        for each in versions
    ]
    return {**crd, "spec": {**mapping_of(crd, "spec"), "versions": kept}}


def _columns(version: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = list_of(version, "additionalPrinterColumns")
    return [column for column in listed if isinstance(column, Mapping)]
