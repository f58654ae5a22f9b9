"""Versions of kinds for contract v1beta1, whose references include a version (CP-13)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

LABEL: Final = "cluster.x-k8s.io/v1beta1"
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class UnknownVersionError(LookupError):
    """The version has to be read from the API server first."""

    def __init__(self, group: str, kind: str) -> None:
        super().__init__(f"version of {kind} in {group}")
        self.group = group
        self.kind = kind


class VersionBook:
    """Versions by group and kind: of this repository, and of others as they are read."""

    def __init__(self, own: Mapping[tuple[str, str], str]) -> None:
        self._known = dict(own)

    def __call__(self, group: str, kind: str) -> str:
        """Return the version; raise UnknownVersionError for a kind that was not added yet."""
        if (group, kind) not in self._known:
            raise UnknownVersionError(group, kind)
        return self._known[group, kind]

    def add(self, group: str, kind: str, version: str) -> None:
        """Add the version of a kind; empty if it has none."""
        self._known[group, kind] = version


def newest_version(labels: Mapping[str, Any]) -> str:
    """Return the greatest version in the label of a CRD (GEN-03); empty if there is none."""
    matches = map(_VERSION.fullmatch, str(labels.get(LABEL) or "").split("_"))
    newest = max((match for match in matches if match is not None), key=_order, default=None)
    return newest.group() if newest is not None else ""


def _order(version: re.Match[str]) -> tuple[int, int, int]:
    major, stage, minor = version.groups()
    return {None: 2, "beta": 1, "alpha": 0}[stage], int(major), int(minor or 0)
