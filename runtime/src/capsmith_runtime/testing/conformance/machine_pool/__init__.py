"""Conformance tests for machine pools."""

from capsmith_runtime.testing.conformance.machine_pool.identities import TestMachinePoolIdentities
from capsmith_runtime.testing.conformance.machine_pool.machines import (
    TestPoolMachineReplacement,
    TestPoolMachines,
    TestPoolMachinesWithSlowCaches,
)
from capsmith_runtime.testing.conformance.machine_pool.pools import (
    TestMachinePool,
    TestMachinePoolCalls,
    TestMachinePoolInstances,
)

__all__ = [
    "TestMachinePool",
    "TestMachinePoolCalls",
    "TestMachinePoolIdentities",
    "TestMachinePoolInstances",
    "TestPoolMachineReplacement",
    "TestPoolMachines",
    "TestPoolMachinesWithSlowCaches",
]
