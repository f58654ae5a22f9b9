"""The API versions of one CRD, compared with those of the provider or of another CRD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from capsmith.importing.outline import Version
from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import list_of, mapping_of, text_of

Entry = dict[str, Any]


def api_versions(crd: Crd, versions: Sequence[Version]) -> Entry:
    """Return the entry ``apiVersions`` of a CRD, or nothing if it has all ``versions`` as such."""
    originals = {
        text_of(each, "name"): mapping_of(each)
        for each in list_of(crd.manifest.document, "spec", "versions")
    }
    present = [each for each in versions if each.name in originals]
    entries = [_entry(each, originals[each.name]) for each in present]
    if len(present) == len(versions) and all(isinstance(each, str) for each in entries):
        return {}
    return {"apiVersions": entries}


def _entry(version: Version, original: Mapping[str, Any]) -> str | Entry:
    entry: Entry = {"name": version.name}
    if bool(original.get("served")) != version.served:
        entry["served"] = bool(original.get("served"))
    if original.get("storage") is True and not version.storage:
        entry["storage"] = True
    deprecated, warning = bool(original.get("deprecated")), text_of(original, "deprecationWarning")
    if (deprecated, warning) != (version.deprecated, version.warning):
        entry["deprecated"] = deprecated
        if deprecated and warning:
            entry["deprecationWarning"] = warning
    return entry if len(entry) > 1 else version.name
