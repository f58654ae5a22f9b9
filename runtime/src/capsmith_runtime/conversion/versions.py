"""Versions of kinds for contract v1beta1, whose references include a version (CP-13)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from capsmith_runtime.kube.clock import monotonic

LABEL: Final = "cluster.x-k8s.io/v1beta1"
EXPIRY_SECONDS: Final = 300.0
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class UnknownVersionError(LookupError):
    """The version has to be read from the API server first."""

    def __init__(self, group: str, kind: str) -> None:
        super().__init__(f"version of {kind} in {group}")
        self.group = group
        self.kind = kind


class VersionBook:
    """Versions by group and kind: of this repository, and of others as they are read.

    Those of others expire: another provider may be installed later, or move to another version.
    """

    def __init__(
        self, own: Mapping[tuple[str, str], str], clock: Callable[[], float] = monotonic
    ) -> None:
        self._own = dict(own)
        self._clock = clock
        self._learned: dict[tuple[str, str], tuple[str, float]] = {}

    def __call__(self, group: str, kind: str) -> str:
        """Return the version; raise UnknownVersionError if it has to be read first."""
        if (group, kind) in self._own:
            return self._own[group, kind]
        version, read_at = self._learned.get((group, kind), ("", -EXPIRY_SECONDS))
        if self._clock() - read_at >= EXPIRY_SECONDS:
            raise UnknownVersionError(group, kind)
        return version

    def last(self, group: str, kind: str) -> str:
        """Return the version that was read last, even if it has expired; empty if none was."""
        return self._learned.get((group, kind), ("", 0.0))[0]

    def add(self, group: str, kind: str, version: str) -> None:
        """Add the version of a kind as it was just read; it must not be empty."""
        self._learned[group, kind] = version, self._clock()


def newest_version(labels: Mapping[str, Any]) -> str:
    """Return the greatest version in the label of a CRD (GEN-03); empty if there is none."""
    matches = map(_VERSION.fullmatch, str(labels.get(LABEL) or "").split("_"))
    newest = max((match for match in matches if match is not None), key=_order, default=None)
    return newest.group() if newest is not None else ""


def _order(version: re.Match[str]) -> tuple[int, int, int]:
    major, stage, minor = version.groups()
    return {None: 2, "beta": 1, "alpha": 0}[stage], int(major), int(minor or 0)
