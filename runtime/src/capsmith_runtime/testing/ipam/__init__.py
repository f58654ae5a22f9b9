"""Scope builders for unit tests of IPAM providers; they need no API server."""

from capsmith_runtime.testing.core import (
    core_cluster,
    spec_from,
)
from capsmith_runtime.testing.ipam.builders import (
    address_claim,
    address_release,
    pool,
)

__all__ = [
    "address_claim",
    "address_release",
    "core_cluster",
    "pool",
    "spec_from",
]
