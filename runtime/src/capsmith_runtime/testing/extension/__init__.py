"""Builders for unit tests of runtime extensions: the requests of hooks, without core."""

from capsmith_runtime.testing.extension.builders import (
    can_update_machine,
    cluster_request,
    generate_patches,
    machine_objects,
    topology_cluster,
    upgrade_plan,
    validate_topology,
    worker_template,
)

__all__ = [
    "can_update_machine",
    "cluster_request",
    "generate_patches",
    "machine_objects",
    "topology_cluster",
    "upgrade_plan",
    "validate_topology",
    "worker_template",
]
