"""The readers and writers for each version of the contract and of core's API."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from capsmith_runtime.contract.constants import CORE_GROUP
from capsmith_runtime.contract.core import CoreReader
from capsmith_runtime.contract.status_writer import StatusWriter
from capsmith_runtime.contract.v1beta1 import CoreV1Beta1, V1Beta1Status
from capsmith_runtime.contract.v1beta2 import CoreV1Beta2, V1Beta2Status

READERS: Final[tuple[CoreReader, ...]] = (CoreV1Beta2(), CoreV1Beta1())
"""Readers for all supported versions of core's API, in order of preference."""


class CoreNotServedError(Exception):
    """Raised if the API server serves no supported version of cluster.x-k8s.io."""


def choose(served: Collection[str]) -> CoreReader:
    """Return the reader for the newest supported version among ``served``.

    Raises :class:`CoreNotServedError` if there is none: Cluster API is not installed yet.
    """
    for reader in READERS:
        if reader.version in served:
            return reader
    known = ", ".join(reader.version for reader in READERS)
    found = ", ".join(sorted(served)) or "nothing"
    # To upgrade is right also where core is newer than this manager: the plan shows it.
    hint = "`clusterctl upgrade plan`" if served else "`clusterctl init`"
    raise CoreNotServedError(
        f"{CORE_GROUP} is required in one of {known}, but the API server serves {found}: run {hint}"
    )


_KNOWN: Final[tuple[StatusWriter, ...]] = (V1Beta2Status(), V1Beta1Status())
STATUS_WRITERS: Final[Mapping[str, StatusWriter]] = {known.contract: known for known in _KNOWN}
"""StatusWriter for each contract version."""
