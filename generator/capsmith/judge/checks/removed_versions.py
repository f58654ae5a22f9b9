"""Check that the API versions of a release's objects are still served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.parse import text_of


@dataclass(frozen=True, slots=True)
class Removed:
    """API versions of a group that are no longer served."""

    group: str
    versions: tuple[str, ...]
    use: str
    """Version that replaces them, with its group if that is another one."""
    since: str
    """Release that no longer serves the versions."""
    kinds: tuple[str, ...] = ()
    """Kinds that these versions had; empty for all kinds of the group."""


@dataclass(frozen=True, slots=True)
class RemovedVersions:
    """API versions that no supported management cluster serves."""

    removed: tuple[Removed, ...]


@check("api-versions-served", RemovedVersions, is_shared=True)
def check_api_versions_served(context: Context, params: RemovedVersions) -> Iterator[Violation]:
    """CC-48: Each object has an API version that is served."""
    known = {
        f"{each.group}/{version}": each for each in params.removed for version in each.versions
    }
    for manifest in context.bundle.objects:
        version = text_of(manifest.document, "apiVersion")
        found = known.get(version)
        if found is not None and manifest.kind in (found.kinds or (manifest.kind,)):
            use = found.use if "/" in found.use else f"{found.group}/{found.use}"
            message = f"{manifest}: {version} is not served since {found.since}; use {use}"
            yield Violation(manifest, message, path=("apiVersion",))
