"""The releases with which the end-to-end tests run, from ``schemas/compatibility.yaml``."""

from __future__ import annotations

import os
from typing import Final

from capsmith.clusters.processes.tools.catalogue import (
    core_releases,
    kubernetes_version,
    load_releases,
)
from capsmith.contract.model import ReleaseTesting

_CORE = load_releases().core

ALL: Final = tuple(each.series for each in _CORE.releases)
"""All series of core that capsmith knows, the oldest first."""
NEWEST: Final = _CORE.default.series
"""The series of core with which all tests run."""
PREVIOUS: Final = tuple(each.series for each in _CORE.executed if each.run is ReleaseTesting.SHORT)
"""Series between, with which few tests run unless `--exhaustive` is given."""
OLDEST: Final = _CORE.executed[0].series
"""The series that speaks contract v1beta1 alone."""
BETWEEN: Final = PREVIOUS[0]
"""The series by which `clusterctl upgrade apply` gets from the oldest to the newest."""

KUBERNETES_SERIES: Final = os.environ.get("CAPSMITH_TEST_KUBERNETES", "")
"""The series of Kubernetes whose servers run; empty: the default."""
KUBERNETES: Final = kubernetes_version(KUBERNETES_SERIES)
KUBERNETES_NEXT: Final = f"{KUBERNETES.rpartition('.')[0]}.{int(KUBERNETES.rpartition('.')[2]) + 1}"
"""What clusters are upgraded to; no server of it runs."""


def is_kubernetes_since(series: str) -> bool:
    """Return whether the running servers belong to a series such as v1.36 or a newer one."""
    return _minor(KUBERNETES) >= _minor(series)


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def core_release(series: str) -> str:
    """Return the release that is built for a series."""
    return core_releases()[series]
