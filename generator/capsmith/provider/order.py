"""How versions and release series are ordered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capsmith.provider.model import Resource
    from capsmith.safetext import VersionName


def version_order(name: str) -> tuple[int, int, int]:
    """Return the sort key of Kubernetes: GA before beta before alpha, then by number (GEN-03)."""
    major, *stage = re.findall(r"alpha|beta|\d+", name)
    if not stage:
        return 2, int(major), 0
    return int(stage[0] == "beta"), int(major), int(stage[1])


def series_order(series: str) -> tuple[int, int]:
    """Return major and minor of ``v0.1``."""
    major, minor = series.removeprefix("v").split(".")
    return int(major), int(minor)


def preferred_version(resource: Resource) -> VersionName:
    """Return the version that core uses (GEN-03); it warns if a ClusterClass names another.

    All versions of a provider follow one contract, so every served one is in the same label.
    Samples and templates have the fields of the storage version: a version with fields of its own
    is never returned.
    """
    others = resource.version_fields or {}
    served = (each.name for each in resource.versions if each.served and each.name not in others)
    return max(served, key=version_order)
