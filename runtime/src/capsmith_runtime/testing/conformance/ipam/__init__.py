"""Conformance tests for IPAM providers."""

from capsmith_runtime.testing.conformance.ipam.address_system import (
    TestAddressSystem,
    TestAddressSystemCalls,
)
from capsmith_runtime.testing.conformance.ipam.claims import (
    TestAddressClaims,
    TestAddressClaimsWithRanges,
    TestOrphanedAddresses,
)
from capsmith_runtime.testing.conformance.ipam.faults import TestAddressFaults
from capsmith_runtime.testing.conformance.ipam.pools import (
    TestAddressPools,
    TestAddressPoolsWithRanges,
)

__all__ = [
    "TestAddressClaims",
    "TestAddressClaimsWithRanges",
    "TestAddressFaults",
    "TestAddressPools",
    "TestAddressPoolsWithRanges",
    "TestAddressSystem",
    "TestAddressSystemCalls",
    "TestOrphanedAddresses",
]
