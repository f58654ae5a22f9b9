"""Deprecated capsmith 0.1 names for control plane providers."""

from __future__ import annotations

from capsmith_runtime.contract.control_plane import ControlPlaneMachine
from capsmith_runtime.controlplane.api import (
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneReconciler,
)
from capsmith_runtime.controlplane.api import ControlPlaneScope as ControlPlane
from capsmith_runtime.controlplane.managed.api import (
    ClusterCredentials,
    ManagedControlPlaneReconciler,
    ManagedControlPlaneState,
)
from capsmith_runtime.controlplane.managed.api import (
    ManagedControlPlaneDeleteScope as ManagedControlPlaneDeletion,
)
from capsmith_runtime.controlplane.managed.api import (
    ManagedControlPlaneScope as ManagedControlPlane,
)

__all__ = [
    "ClusterCredentials",
    "ControlPlane",
    "ControlPlaneHealth",
    "ControlPlaneMachine",
    "ControlPlaneMember",
    "ControlPlaneReconciler",
    "ManagedControlPlane",
    "ManagedControlPlaneDeletion",
    "ManagedControlPlaneReconciler",
    "ManagedControlPlaneState",
]
