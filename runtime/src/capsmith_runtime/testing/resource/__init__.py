"""Scope builders for unit tests of kinds that implement Resource; they need no API server."""

from capsmith_runtime.testing.core import core_cluster, spec_from
from capsmith_runtime.testing.resource.builders import resource, resource_deletion

__all__ = [
    "core_cluster",
    "resource",
    "resource_deletion",
    "spec_from",
]
