"""Pools whose Machines capsmith cannot create: their CRDs keep the field that names the kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from capsmith.importing.fields import field_of
from capsmith.importing.normal import normal
from capsmith.importing.refusals import Refusal
from capsmith.importing.source import SourceCrd
from capsmith.manifests.parse import mapping_of
from capsmith.provider.pools import MACHINES

_FIELD = "infrastructureMachineKind"


def add_machine_kinds(
    data: dict[str, Any], sources: Iterable[SourceCrd], refusals: Iterable[Refusal]
) -> bool:
    """Declare the field of pools without the refused feature; return whether there are any."""
    refused = {each.path[:2] for each in refusals if each.path[2:] == ("features", MACHINES)}
    found = False
    for source in sources:
        path = (source.section, source.crd.kind)
        entry = mapping_of(data, *path)
        if path not in refused or not entry:
            continue
        written = data[path[0]][path[1]]
        for version in source.crd.versions:
            schema = mapping_of(version.schema, "properties", "status", "properties", _FIELD)
            of_version = mapping_of(written, "versions", version.name)
            if not schema or not (version.storage or "contractFields" in of_version):
                continue
            part = written if version.storage else written["versions"][version.name]
            fields = part.setdefault("contractFields", {}).setdefault("status", {})
            fields[_FIELD] = field_of(normal(schema))
            found = True
    return found
