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
from capsmith_runtime.testing.conformance.controlplane.managed_calls import (
    TestManagedControlPlaneCalls,
)
from capsmith_runtime.testing.conformance.controlplane.members import TestControlPlaneMembers

__all__ = [
    "TestControlPlane",
    "TestControlPlaneCrashes",
    "TestControlPlaneFaults",
    "TestControlPlaneMembers",
    "TestManagedControlPlane",
    "TestManagedControlPlaneCalls",
    "TestManagedControlPlaneFaults",
]
