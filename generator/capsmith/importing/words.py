"""Texts and values of CRDs as provider.yaml can hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from capsmith.importing.normal import columns_of
from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import list_of, mapping_of, text_of, texts_of
from capsmith.yamldoc.quote import UNPRINTABLE

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


_INT64 = range(-(2**63), 2**63)

LONGEST = 4000
"""Longest description, in characters."""


def text(written: str) -> str:
    """Return a description without what clusterctl would replace, and cut to its greatest length.

    clusterctl reads ``${X}`` as a variable, and makes one dollar of two.
    """
    lines = [line.expandtabs(2).rstrip() for line in written.strip().split("\n")]
    found = UNPRINTABLE.sub("", "\n".join(lines))
    while "$$" in found:
        found = found.replace("$$", "$")
    found = found.replace("${", "$(")
    return found if len(found) <= LONGEST else found[: LONGEST - 1].rstrip() + "…"


def plain_data(value: Any) -> Any:
    """Return a copy whose keys are texts and whose values can be written.

    YAML reads a plain 2030-01-31 as a date, the API server as a text.  Numbers that no field can
    hold become texts, which the checks refuse.
    """
    if isinstance(value, Mapping):
        return {UNPRINTABLE.sub("", str(key)): plain_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(each) for each in value]
    if isinstance(value, str):
        return UNPRINTABLE.sub("", value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value in _INT64 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if isinstance(value, date) else UNPRINTABLE.sub("", str(value))
