"""Pools of IP addresses that another system allocates."""

from __future__ import annotations

from capsmith_runtime.ipam import (
    AddressClaim,
    AddressRelease,
    Allocation,
    Deleted,
    ExternalPoolReconciler,
    Waiting,
    exhausted,
)

from .._generated.api.lagoon_prefix import LagoonPrefixSpec
from ..simulated_ipam import SimulatedIpam


class LagoonPrefixReconciler(ExternalPoolReconciler[LagoonPrefixSpec]):
    """Replace the simulated IPAM system with your own client; keep the signatures."""

    def __init__(self, ipam: SimulatedIpam | None = None) -> None:
        self._ipam = ipam or SimulatedIpam()

    def allocate(self, claim: AddressClaim[LagoonPrefixSpec]) -> Allocation | Waiting:
        """Return the same address for the same external id, even after a crash."""
        address = self._ipam.find(claim.external_id) or self._ipam.allocate(claim.external_id)
        if address is None:
            return exhausted()
        return Allocation.of(address, self._ipam.network.prefixlen, self._ipam.gateway)

    def release(self, claim: AddressRelease) -> Deleted | Waiting:
        """Release the address by external id: a crash may have lost the address itself."""
        self._ipam.release(claim.external_id)
        return Deleted()
