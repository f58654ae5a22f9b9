"""Conformance tests of infrastructure providers."""

from capsmith_runtime.testing.conformance.infrastructure.cloud_faults import (
    TestInfrastructureCalls,
)
from capsmith_runtime.testing.conformance.infrastructure.cluster import (
    TestControlPlaneEndpoint,
    TestInfraCluster,
)
from capsmith_runtime.testing.conformance.infrastructure.deletion_order import TestDeletionOrder
from capsmith_runtime.testing.conformance.infrastructure.faults import TestInfrastructureFaults
from capsmith_runtime.testing.conformance.infrastructure.machine import TestInfraMachine
from capsmith_runtime.testing.conformance.infrastructure.machine_templates import (
    TestMachineTemplates,
)
from capsmith_runtime.testing.conformance.infrastructure.terminated_machines import (
    TestTerminatedMachines,
)

__all__ = [
    "TestControlPlaneEndpoint",
    "TestDeletionOrder",
    "TestInfraCluster",
    "TestInfraMachine",
    "TestInfrastructureCalls",
    "TestInfrastructureFaults",
    "TestMachineTemplates",
    "TestTerminatedMachines",
]
