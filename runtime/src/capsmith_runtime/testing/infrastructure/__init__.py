"""Scope builders for unit tests of infrastructure providers; they need no API server."""

from capsmith_runtime.testing.core import core_cluster, core_machine, spec_from
from capsmith_runtime.testing.core_machine_pool import core_machine_pool
from capsmith_runtime.testing.infrastructure.builders import (
    infra_cluster,
    infra_cluster_deletion,
    infra_cluster_view,
    infra_machine,
    infra_machine_deletion,
    infra_machine_template,
    infra_machine_view,
)
from capsmith_runtime.testing.infrastructure.pool_builders import (
    infra_machine_pool,
    infra_machine_pool_deletion,
)

__all__ = [
    "core_cluster",
    "core_machine",
    "core_machine_pool",
    "infra_cluster",
    "infra_cluster_deletion",
    "infra_cluster_view",
    "infra_machine",
    "infra_machine_deletion",
    "infra_machine_pool",
    "infra_machine_pool_deletion",
    "infra_machine_template",
    "infra_machine_view",
    "spec_from",
]
