"""Conformance tests for machine pools."""

from capsmith_runtime.testing.conformance.machine_pool.identities import (
    TestAccountsOfMachinePools,
    TestAccountsOfPoolMachines,
    TestMachinePoolIdentities,
)
from capsmith_runtime.testing.conformance.machine_pool.machines import (
    TestPoolMachineReplacement,
    TestPoolMachines,
    TestPoolMachinesWithSlowCaches,
)
from capsmith_runtime.testing.conformance.machine_pool.pools import (
    TestMachinePool,
    TestMachinePoolAutoscaler,
    TestMachinePoolCalls,
    TestMachinePoolInstances,
    TestMachinePoolUpgrade,
)

__all__ = [
    "TestAccountsOfMachinePools",
    "TestAccountsOfPoolMachines",
    "TestMachinePool",
    "TestMachinePoolAutoscaler",
    "TestMachinePoolCalls",
    "TestMachinePoolIdentities",
    "TestMachinePoolInstances",
    "TestMachinePoolUpgrade",
    "TestPoolMachineReplacement",
    "TestPoolMachines",
    "TestPoolMachinesWithSlowCaches",
]
