"""Conformance tests for bootstrap providers."""

from capsmith_runtime.testing.conformance.bootstrap.content import TestBootstrapContent
from capsmith_runtime.testing.conformance.bootstrap.faults import (
    TestBootstrapFaults,
    TestBootstrapSecrets,
)
from capsmith_runtime.testing.conformance.bootstrap.machines import (
    TestBootstrapData,
    TestBootstrapDataOfPools,
)
from capsmith_runtime.testing.conformance.bootstrap.refresh import TestBootstrapDataRefresh

__all__ = [
    "TestBootstrapContent",
    "TestBootstrapData",
    "TestBootstrapDataOfPools",
    "TestBootstrapDataRefresh",
    "TestBootstrapFaults",
    "TestBootstrapSecrets",
]
