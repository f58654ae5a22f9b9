"""Reconcile IPAddressClaims on pools whose addresses another system allocates."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.contract import ipam
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.ipam import IPAddressClaim
from capsmith_runtime.ipam.address_ranges import number_of
from capsmith_runtime.ipam.allocator import AddressRequest
from capsmith_runtime.ipam.api import AddressClaim, Allocation, ExternalPoolReconciler
from capsmith_runtime.ipam.claims import ClaimController
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Deleted, Waiting

_RETRY_SECONDS = 1.0


class ExternalClaimController(ClaimController):
    """Call the reconciler, then reserve its result so that no address is allocated twice."""

    reconciler: ExternalPoolReconciler[Any]

    async def _allocate(
        self, patcher: Patcher, key: NamespacedName, claim: IPAddressClaim, cluster: Cluster | None
    ) -> Allocation | Waiting:
        """Return the address that the other system allocates to this claim."""
        pool_key = self._pool_key(claim)
        allocator, usage = self._registry.allocator(pool_key), self._registry.usage(pool_key)
        pool = self._registry.find_pool(pool_key)
        if usage.problem is not None:
            return allocator.wait_for_pool(key, usage.problem)
        if pool is None:
            return Waiting(ipam.REASON_POOL_NOT_READY, "the pool has changed", _RETRY_SECONDS)
        # The first side effect happens in the other system, so the finalizer comes first (SM-08).
        await self._add_finalizer(patcher)
        scope = AddressClaim(
            **self._scope_fields(patcher.obj),
            pool=pool,
            cluster=cluster,
            taken=usage,
        )
        allocation = await self._call(patcher, self.reconciler.allocate, scope, Allocation)
        if isinstance(allocation, Waiting):
            return allocation
        request = AddressRequest(key, claim.uid, number_of(allocation.address))
        reserved = await allocator.reserve(request)
        return reserved if isinstance(reserved, Waiting) else allocation

    async def _release_address(
        self, patcher: Patcher, key: NamespacedName, claim: IPAddressClaim, address: JSON | None
    ) -> Deleted | Waiting:
        """Release in the other system before the address is shown as free here."""
        identity = self.kind.external_id(patcher.obj)
        scope = self._registry.release_scope(key, identity, self._pool_key(claim), address)
        return await self._call(patcher, self.reconciler.release, scope, Deleted)
