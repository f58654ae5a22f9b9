"""Conformance tests of bootstrap providers."""

from capsmith_runtime.testing.conformance.bootstrap.faults import TestBootstrapFaults
from capsmith_runtime.testing.conformance.bootstrap.machines import TestBootstrapData
from capsmith_runtime.testing.conformance.bootstrap.pools import TestBootstrapDataOfPools
from capsmith_runtime.testing.conformance.bootstrap.secrets import TestBootstrapSecrets

__all__ = [
    "TestBootstrapData",
    "TestBootstrapDataOfPools",
    "TestBootstrapFaults",
    "TestBootstrapSecrets",
]
