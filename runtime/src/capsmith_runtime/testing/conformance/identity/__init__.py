"""Conformance tests for kinds that use identities."""

from capsmith_runtime.testing.conformance.identity.addons import (
    TestAddonCredentials,
    TestAddonIdentities,
    TestAddonSessions,
)
from capsmith_runtime.testing.conformance.identity.addresses import TestAddressPoolIdentities
from capsmith_runtime.testing.conformance.identity.managed import TestManagedControlPlaneIdentities

__all__ = [
    "TestAddonCredentials",
    "TestAddonIdentities",
    "TestAddonSessions",
    "TestAddressPoolIdentities",
    "TestManagedControlPlaneIdentities",
]
