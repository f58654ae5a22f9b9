"""Scope builders for unit tests of bootstrap providers; they need no API server."""

from capsmith_runtime.testing.bootstrap.builders import (
    CERTIFICATES,
    bootstrap_config,
    pool_bootstrap_config,
)
from capsmith_runtime.testing.core import (
    core_cluster,
    core_machine,
    spec_from,
)
from capsmith_runtime.testing.core_machine_pool import core_machine_pool

__all__ = [
    "CERTIFICATES",
    "bootstrap_config",
    "core_cluster",
    "core_machine",
    "core_machine_pool",
    "pool_bootstrap_config",
    "spec_from",
]
