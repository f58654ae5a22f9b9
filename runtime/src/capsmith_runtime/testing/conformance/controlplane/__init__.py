"""Conformance tests of control plane providers."""

from capsmith_runtime.testing.conformance.controlplane.crashes import TestControlPlaneCrashes
from capsmith_runtime.testing.conformance.controlplane.faults import TestControlPlaneFaults
from capsmith_runtime.testing.conformance.controlplane.lifecycle import TestControlPlane
from capsmith_runtime.testing.conformance.controlplane.managed import TestManagedControlPlane
from capsmith_runtime.testing.conformance.controlplane.managed_faults import (
    TestManagedControlPlaneFaults,
)

__all__ = [
    "TestControlPlane",
    "TestControlPlaneCrashes",
    "TestControlPlaneFaults",
    "TestManagedControlPlane",
    "TestManagedControlPlaneFaults",
]
