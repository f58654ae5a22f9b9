"""Conformance of infrastructure providers."""

from capsmith_runtime.testing.conformance.infrastructure.cloud_faults import (
    TestInfrastructureCalls,
    TestMachinePoolCalls,
)
from capsmith_runtime.testing.conformance.infrastructure.cluster import (
    TestControlPlaneEndpoint,
    TestInfraCluster,
)
from capsmith_runtime.testing.conformance.infrastructure.credentials import (
    TestCredentials,
    TestCredentialsOfNamespaces,
)
from capsmith_runtime.testing.conformance.infrastructure.faults import TestInfrastructureFaults
from capsmith_runtime.testing.conformance.infrastructure.identities import TestIdentities
from capsmith_runtime.testing.conformance.infrastructure.machine import TestInfraMachine
from capsmith_runtime.testing.conformance.infrastructure.machine_addresses import (
    TestMachineAddresses,
)
from capsmith_runtime.testing.conformance.infrastructure.machine_pool import (
    TestMachinePool,
    TestMachinePoolReconciliation,
)
from capsmith_runtime.testing.conformance.infrastructure.machine_templates import (
    TestMachineTemplates,
)
from capsmith_runtime.testing.conformance.infrastructure.manifests import TestManifests
from capsmith_runtime.testing.conformance.infrastructure.observed_generation import (
    TestObservedGeneration,
)
from capsmith_runtime.testing.conformance.infrastructure.pool_machines import (
    TestPoolMachineReconciliation,
    TestPoolMachines,
    TestPoolMachinesWithSlowCaches,
)
from capsmith_runtime.testing.conformance.infrastructure.pool_ownership import TestPoolMachineOwners
from capsmith_runtime.testing.conformance.infrastructure.pool_replacement import (
    TestPoolMachineReplacement,
)
from capsmith_runtime.testing.conformance.infrastructure.terminated_machines import (
    TestTerminatedMachines,
)
from capsmith_runtime.testing.conformance.infrastructure.watch_scope import TestWatchScope

__all__ = [
    "TestControlPlaneEndpoint",
    "TestCredentials",
    "TestCredentialsOfNamespaces",
    "TestIdentities",
    "TestInfraCluster",
    "TestInfraMachine",
    "TestInfrastructureCalls",
    "TestInfrastructureFaults",
    "TestMachineAddresses",
    "TestMachinePool",
    "TestMachinePoolCalls",
    "TestMachinePoolReconciliation",
    "TestMachineTemplates",
    "TestManifests",
    "TestObservedGeneration",
    "TestPoolMachineOwners",
    "TestPoolMachineReconciliation",
    "TestPoolMachineReplacement",
    "TestPoolMachines",
    "TestPoolMachinesWithSlowCaches",
    "TestTerminatedMachines",
    "TestWatchScope",
]
