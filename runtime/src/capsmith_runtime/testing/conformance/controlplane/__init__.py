"""Conformance tests for control plane providers."""

from capsmith_runtime.testing.conformance.controlplane.faults import (
    TestControlPlaneCrashes,
    TestControlPlaneFaults,
)
from capsmith_runtime.testing.conformance.controlplane.lifecycle import TestControlPlane
from capsmith_runtime.testing.conformance.controlplane.managed import (
    TestManagedControlPlane,
    TestManagedControlPlaneFaults,
)

__all__ = [
    "TestControlPlane",
    "TestControlPlaneCrashes",
    "TestControlPlaneFaults",
    "TestManagedControlPlane",
    "TestManagedControlPlaneFaults",
]
