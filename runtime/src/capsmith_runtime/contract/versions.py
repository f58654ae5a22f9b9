"""The readers and writers for each contract version and each core version's API."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from capsmith_runtime.contract import formats
from capsmith_runtime.contract.constants import CORE_GROUP
from capsmith_runtime.contract.core import CoreReader
from capsmith_runtime.contract.status_writer import ContractFormat, StatusWriter

# A vendored copy has no formats of contracts that the repository does not follow.
_FORMATS: Final[tuple[ContractFormat, ...]] = tuple(
    getattr(formats, name) for name in sorted(formats.__all__, reverse=True)
)
READERS: Final[tuple[CoreReader, ...]] = tuple(each.reader for each in _FORMATS)
"""Readers for all supported versions of core's API, preferred version first."""


class CoreNotServedError(Exception):
    """Raised if the API server serves no supported version of cluster.x-k8s.io."""


def choose(served: Collection[str]) -> CoreReader:
    """Return the reader for the preferred supported version among ``served``.

    Raises :class:`CoreNotServedError` if there is none, such as before Cluster API is installed.
    """
    for reader in READERS:
        if reader.version in served:
            return reader
    known = ", ".join(reader.version for reader in READERS)
    found = ", ".join(sorted(served)) or "nothing"
    # Also correct if core is newer than this manager: the upgrade plan shows what to upgrade.
    hint = "`clusterctl upgrade plan`" if served else "`clusterctl init`"
    raise CoreNotServedError(
        f"{CORE_GROUP} is required in one of {known}, but the API server serves {found}: run {hint}"
    )


STATUS_WRITERS: Final[Mapping[str, StatusWriter]] = {
    each.writer.contract: each.writer for each in _FORMATS
}
"""The StatusWriter for each contract version."""
