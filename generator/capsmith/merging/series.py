"""The release series of a repository: clusterctl's map of them may grow, and never shrink."""

from __future__ import annotations

import re

from capsmith.findings import Finding, Location, Severity
from capsmith.safetext import RelativePath
from capsmith.tree import FileTree

METADATA_PATH = RelativePath("metadata.yaml")
_SERIES = re.compile(r"^- major: (\d+)\r?\n  minor: (\d+)\r?$", re.MULTILINE)


def dropped_series(before: bytes | None, tree: FileTree) -> tuple[Finding, ...]:
    """Warn of each series that the metadata ``before`` names, and that of ``tree`` does not.

    clusterctl can neither install nor upgrade from a release whose series it does not know
    (CC-08), and what releases of former contracts have left in CRDs follows from them (GEN-06).
    """
    if METADATA_PATH not in tree:
        return ()
    text = (before or b"").decode(errors="replace")
    known = {match.groups() for match in _SERIES.finditer(tree[METADATA_PATH].text)}
    return tuple(
        Finding(
            "release-forgotten",
            f"provider.yaml no longer has the release series v{match[1]}.{match[2]}",
            Location(METADATA_PATH, text.count("\n", 0, match.start()) + 1, 1),
            Severity.WARNING,
            hint="Put it back under `releases`, with its contract, unless it was never "
            "released: clusterctl could not upgrade from it.",
        )
        for match in _SERIES.finditer(text)
        if match.groups() not in known
    )
