"""Entries of ``metadata.managedFields`` in removed versions, which break server-side apply.

The API server converts the fields of each entry to the version of a request, and returns an error
if the CRD no longer has the version of the entry.
"""

from __future__ import annotations

from collections.abc import Collection

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import JSON


def served_entries(obj: JSON, served: Collection[str], api_version: str) -> list[JSON] | None:
    """Return the entries whose version is served, never an empty list; None if all are.

    ``served`` holds versions with their group; ``api_version`` is that of a new entry.
    """
    entries = metadata.items(obj, "metadata", "managedFields")
    kept = [entry for entry in entries if entry.get("apiVersion") in served]
    if len(kept) == len(entries):
        return None
    return kept or [_seed(entries[0], api_version)]


def _seed(removed: JSON, api_version: str) -> JSON:
    """Return an entry that owns only the name.

    Without any entry, the API server would create one of the manager "before-first-apply" that owns
    all fields.  They would then have two owners, and remain when the next applier drops them.
    """
    return {
        **{key: removed[key] for key in ("manager", "operation", "time") if key in removed},
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:name": {}}},
    }
