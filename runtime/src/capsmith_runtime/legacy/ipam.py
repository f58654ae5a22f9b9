"""Deprecated capsmith 0.1 names for IPAM providers."""

from __future__ import annotations

from capsmith_runtime.ipam.address_ranges import AddressRanges, InvalidRangesError
from capsmith_runtime.ipam.api import (
    AddressClaim,
    AddressRelease,
    Allocation,
    ExternalPoolReconciler,
    Pool,
    PoolState,
    RangePoolReconciler,
    exhausted,
)

__all__ = [
    "AddressClaim",
    "AddressRanges",
    "AddressRelease",
    "Allocation",
    "ExternalPoolReconciler",
    "InvalidRangesError",
    "Pool",
    "PoolState",
    "RangePoolReconciler",
    "exhausted",
]
