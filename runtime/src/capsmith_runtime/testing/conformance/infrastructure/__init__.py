"""Conformance tests for infrastructure providers."""

from capsmith_runtime.testing.conformance.infrastructure.accounts import TestAccounts
from capsmith_runtime.testing.conformance.infrastructure.cloud_faults import TestInfrastructureCalls
from capsmith_runtime.testing.conformance.infrastructure.cluster import (
    TestClustersWithoutMachines,
    TestControlPlaneEndpoint,
    TestInfraCluster,
)
from capsmith_runtime.testing.conformance.infrastructure.deletion_order import TestDeletionOrder
from capsmith_runtime.testing.conformance.infrastructure.failure_domains import TestFailureDomains
from capsmith_runtime.testing.conformance.infrastructure.faults import TestInfrastructureFaults
from capsmith_runtime.testing.conformance.infrastructure.identities import (
    TestAccountsOfClusters,
    TestAccountsOfMachines,
    TestMachineIdentities,
    TestSourceIdentities,
)
from capsmith_runtime.testing.conformance.infrastructure.machine import (
    TestInfraMachine,
    TestTerminatedMachines,
)
from capsmith_runtime.testing.conformance.infrastructure.machine_templates import (
    TestMachineTemplates,
)
from capsmith_runtime.testing.conformance.infrastructure.namespaces import TestNamespaces
from capsmith_runtime.testing.conformance.infrastructure.settings import TestSettings
from capsmith_runtime.testing.conformance.infrastructure.user_data import TestUserData
from capsmith_runtime.testing.conformance.infrastructure.watches import (
    TestSessionWatches,
    TestWatchedMachines,
)

__all__ = [
    "TestAccounts",
    "TestAccountsOfClusters",
    "TestAccountsOfMachines",
    "TestClustersWithoutMachines",
    "TestControlPlaneEndpoint",
    "TestDeletionOrder",
    "TestFailureDomains",
    "TestInfraCluster",
    "TestInfraMachine",
    "TestInfrastructureCalls",
    "TestInfrastructureFaults",
    "TestMachineIdentities",
    "TestMachineTemplates",
    "TestNamespaces",
    "TestSessionWatches",
    "TestSettings",
    "TestSourceIdentities",
    "TestTerminatedMachines",
    "TestUserData",
    "TestWatchedMachines",
]
