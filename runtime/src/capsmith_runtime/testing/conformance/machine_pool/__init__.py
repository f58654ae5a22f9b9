"""Conformance tests of machine pools."""

from capsmith_runtime.testing.conformance.machine_pool.machines import (
    TestPoolMachines,
    TestPoolMachinesWithSlowCaches,
)
from capsmith_runtime.testing.conformance.machine_pool.pools import (
    TestMachinePool,
    TestMachinePoolCalls,
)
from capsmith_runtime.testing.conformance.machine_pool.replacement import TestPoolMachineReplacement

__all__ = [
    "TestMachinePool",
    "TestMachinePoolCalls",
    "TestPoolMachineReplacement",
    "TestPoolMachines",
    "TestPoolMachinesWithSlowCaches",
]
