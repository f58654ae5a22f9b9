"""Scope builders for unit tests of add-on providers; they need no API server."""

from capsmith_runtime.testing.addon.builders import (
    WorkloadObjects,
    addon,
    addon_deletion,
    workload,
)
from capsmith_runtime.testing.core import (
    core_cluster,
    spec_from,
)

__all__ = [
    "WorkloadObjects",
    "addon",
    "addon_deletion",
    "core_cluster",
    "spec_from",
    "workload",
]
