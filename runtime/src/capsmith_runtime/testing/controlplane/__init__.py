"""Scope builders for unit tests of control plane providers; they need no API server."""

from capsmith_runtime.testing.controlplane.builders import (
    ALL_HEALTHY,
    ALL_WELL,
    control_plane,
    control_plane_member,
    machine,
    managed_control_plane,
    managed_control_plane_deletion,
)
from capsmith_runtime.testing.core import (
    core_cluster,
    spec_from,
)

__all__ = [
    "ALL_HEALTHY",
    "ALL_WELL",
    "control_plane",
    "control_plane_member",
    "core_cluster",
    "machine",
    "managed_control_plane",
    "managed_control_plane_deletion",
    "spec_from",
]
