"""Conformance tests for bootstrap providers."""

from capsmith_runtime.testing.conformance.bootstrap.faults import (
    TestBootstrapFaults,
    TestBootstrapSecrets,
)
from capsmith_runtime.testing.conformance.bootstrap.machines import (
    TestBootstrapData,
    TestBootstrapDataOfPools,
)

__all__ = [
    "TestBootstrapData",
    "TestBootstrapDataOfPools",
    "TestBootstrapFaults",
    "TestBootstrapSecrets",
]
