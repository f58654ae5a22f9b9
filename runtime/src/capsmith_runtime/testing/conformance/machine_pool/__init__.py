"""Conformance of machine pools."""

from capsmith_runtime.testing.conformance.machine_pool.machines import (
    TestPoolMachineReconciliation,
    TestPoolMachines,
    TestPoolMachinesWithSlowCaches,
)
from capsmith_runtime.testing.conformance.machine_pool.ownership import TestPoolMachineOwners
from capsmith_runtime.testing.conformance.machine_pool.pools import (
    TestMachinePool,
    TestMachinePoolCalls,
    TestMachinePoolReconciliation,
)
from capsmith_runtime.testing.conformance.machine_pool.replacement import TestPoolMachineReplacement

__all__ = [
    "TestMachinePool",
    "TestMachinePoolCalls",
    "TestMachinePoolReconciliation",
    "TestPoolMachineOwners",
    "TestPoolMachineReconciliation",
    "TestPoolMachineReplacement",
    "TestPoolMachines",
    "TestPoolMachinesWithSlowCaches",
]
