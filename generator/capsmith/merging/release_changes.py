"""Warn about changes that affect users of earlier releases: dropped series, moved components."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from capsmith.findings import Finding, Location, Severity
from capsmith.merging.lock import Lock
from capsmith.provider.model import Provider
from capsmith.safetext import RelativePath
from capsmith.tree import SPEC_NAME, FileTree
from capsmith.yamldoc.quote import join_names

METADATA_PATH = RelativePath("metadata.yaml")
_SERIES = re.compile(r"^- major: (\d+)\r?\n  minor: (\d+)\r?$", re.MULTILINE)


def find_dropped_series(before: bytes | None, tree: FileTree) -> tuple[Finding, ...]:
    """Return warnings about release series that ``before`` lists and ``tree`` lacks.

    clusterctl can neither install nor upgrade from a release whose series is not listed (CC-08).
    The series with former contract versions also show which labels earlier releases left in CRDs
    (GEN-06). ``before`` is the previous content of metadata.yaml, or None.
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


_WIRING: Final = re.compile(r"src/[^/]+/_generated/wiring/([a-z][a-z_]*)\.py")
"""Path to the module that capsmith has generated for each provider type since 0.2."""
_SETTINGS: Final = re.compile(r"([a-z-]+)/clusterctl-settings\.json")
"""Path to a file that each component has, except the first, in a folder named after its type."""


class _Form(NamedTuple):
    """The provider types of a repository, and the types that have their own component."""

    types: frozenset[str]
    with_folder: frozenset[str]

    @classmethod
    def of(cls, paths: Iterable[str]) -> _Form:
        """Return the form of a repository that consists of these files."""
        names = [str(path) for path in paths]
        types = (match[1].replace("_", "-") for name in names if (match := _WIRING.fullmatch(name)))
        folders = (match[1] for name in names if (match := _SETTINGS.fullmatch(name)))
        return cls(frozenset(types), frozenset(folders))

    def combines(self, type: str) -> bool:
        """Return whether a type belongs to a component with several types."""
        others = self.types - self.with_folder
        return type in others and len(others) > 1


def find_changed_components(
    provider: Provider, tree: FileTree, lock: Lock | None
) -> tuple[Finding, ...]:
    """Return warnings about sections that were combined or separated since the lock was written.

    Such a section's CRDs get a different provider label.  clusterctl cannot change a provider's
    type in an upgrade, so users must uninstall and reinstall the provider (CC-51).
    """
    if lock is None:
        return ()
    # Uses only paths, because the lock has them for every repository, whatever release generated
    # it.
    before, now = _Form.of(lock.files), _Form.of(tree.files)
    first = str(provider.components[0].type)
    combined = [
        each
        for each in sorted(before.with_folder - now.with_folder - {first})
        if now.combines(each)
    ]
    separated = [
        each for each in sorted(now.with_folder - before.with_folder) if before.combines(each)
    ]
    found = []
    if combined:
        flags = _flags(combined, provider)
        hint = (
            f"Before users upgrade to this release, they must run `clusterctl delete {flags}`,"
            " without --include-crd and --include-namespace: the objects stay."
        )
        found.append(_finding(combined, "joined another component", hint))
    if separated:
        flags = _flags(separated, provider)
        hint = f"After users have upgraded, they must run `clusterctl init {flags}`."
        owner = "its" if len(separated) == 1 else "their"
        found.append(_finding(separated, f"left {owner} component", hint))
    return tuple(found)


def _flags(types: Sequence[str], provider: Provider) -> str:
    return " ".join(f"--{each} {provider.name}" for each in types)


def _finding(types: Sequence[str], change: str, hint: str) -> Finding:
    message = f"{join_names(types)} {change}"
    return Finding("components-changed", message, Location(SPEC_NAME), Severity.WARNING, hint=hint)
