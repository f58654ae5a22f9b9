"""Reconciles IPAddressClaims, as described in IP-08 and IP-10.

A claim that gets its address immediately takes three requests (for its finalizer, the IPAddress and
its status) and shares one write to the pool with other claims.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, is_deleted_for_move, pause_message
from capsmith_runtime.contract.ipam import (
    REASON_ALLOCATION_FAILED,
    REASON_POOL_EXHAUSTED,
    REASON_POOL_NOT_READY,
    IPAddressClaim,
    IpamDialect,
)
from capsmith_runtime.errors import AlreadyExistsError, ReconcileError
from capsmith_runtime.ipam.address_ranges import address_of, number_of, parse_number
from capsmith_runtime.ipam.addresses import (
    IPAddressWriter,
    is_created_by_provider,
    is_owned_by_claim,
)
from capsmith_runtime.ipam.allocator import AddressRequest
from capsmith_runtime.ipam.api import AddressClaim, Allocation, ExternalPoolReconciler
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.ipam.pools import PoolRegistry
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.live import find_by_name
from capsmith_runtime.reconcile.patcher import Patcher, ready
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.status_reporter import StatusReporter, describe_failure

_MOVE_LABEL = {"clusterctl.cluster.x-k8s.io/move": ""}
_RETRY_SECONDS = 1.0


class ClaimController:
    """Reconciles the IPAddressClaims for one kind of pool."""

    def __init__(
        self,
        registry: PoolRegistry,
        claims: Informer,
        addresses: Informer,
        dialect: IpamDialect,
        caches: Caches,
        context: ControllerContext,
    ) -> None:
        self.kind = registry.kind
        self._registry = registry
        self._addresses = addresses
        self._dialect = dialect
        self._caches = caches
        self._context = context
        self._writer = IPAddressWriter(context.client, dialect, addresses, claims.resource)
        self._reporter = ClaimReporter(self.kind, context)
        self._author = AuthorStep(self.kind, context, self._reporter, registry.reconciler)
        external = isinstance(registry.reconciler, ExternalPoolReconciler)
        self._source: AllocationSource = (
            ExternalSource(registry, self._author) if external else RangeSource(registry)
        )
        # The conditions of claims follow the version of core's API, not the provider's contract.
        self._runner = ReconcileRunner(
            self.kind,
            claims,
            context,
            self._reporter,
            new_patcher=partial(Patcher, context.client, claims, dialect),
            forget=self._forget,
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        """Bind an IPAddress to a claim, or release a deleted claim's address."""
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        claim = self._dialect.read_claim(patcher.obj)
        if is_deleted_for_move(patcher.obj):
            return Result()
        if metadata.is_deleting(patcher.obj):
            return await self._reconcile_delete(patcher, key, claim)
        cluster = self._caches.cluster(key.namespace, claim.cluster_name)
        # A Cluster that is named but missing may still be created; its event requeues this claim.
        missing_cluster = bool(claim.cluster_name) and cluster is None
        if missing_cluster or self._is_claim_paused(patcher.obj, claim, cluster):
            # Another claim may have the address that was kept for this one.
            self._registry.requeue_claims(self._registry.claimed_pool(claim))
            return self._forget(key)
        address = self._addresses.get(key)
        if address is not None:
            return await self._bind_existing(patcher, key, claim, address)
        return await self._reconcile_normal(patcher, key, claim, cluster)

    async def _reconcile_normal(
        self, patcher: Patcher, key: NamespacedName, claim: IPAddressClaim, cluster: Cluster | None
    ) -> Result:
        allocation = await self._source.allocate(patcher, key, claim, cluster)
        if isinstance(allocation, Waiting):
            return await self._report_waiting(patcher, allocation)
        await add_claim_finalizer(patcher, self.kind)
        pool = self._registry.pools.get(self._registry.claimed_pool(claim))
        resource = self.kind.resource
        try:
            address = await self._writer.create(patcher.obj, pool, resource, allocation)
        except AlreadyExistsError:
            return Result(_RETRY_SECONDS)  # once the cache has it, its event requeues this claim
        if self._conflicting_addresses(claim, number_of(allocation.address), key):
            # A user has created the same address in the meantime. The claim does not refer to ours
            # yet.
            await self._writer.delete(address)
            return Result(_RETRY_SECONDS)
        return await self._write_address_ref(patcher, key)

    async def _bind_existing(
        self, patcher: Patcher, key: NamespacedName, claim: IPAddressClaim, address: JSON
    ) -> Result:
        """Bind the IPAddress with the claim's name: created earlier, moved here, or by a user."""
        view = self._dialect.read_address(address)
        if view.claim_name != claim.name or view.pool != claim.pool:
            return await self._report_waiting(
                patcher, _allocation_failed(f"IPAddress {key} exists, but has another owner")
            )
        # The address of an earlier claim has the name that this claim's address needs.
        if metadata.is_deleting(address) and not is_owned_by_claim(address, patcher.obj):
            await self._writer.delete(address)
            return Result()  # the event of its deletion requeues this claim
        number = parse_number(view.address)
        conflicts = self._conflicting_addresses(claim, number, key) if number is not None else []
        if conflicts and not claim.address_name:
            ours = is_created_by_provider(address, self.kind.resource.group)
            if ours and not is_owned_by_claim(address, patcher.obj):
                # A manager that had lost the lease created it for a former claim of this name.
                await self._writer.delete(address)
                return Result()
            message = f"{view.address} is also the address of IPAddress {conflicts[0]}"
            return await self._report_waiting(patcher, _allocation_failed(message))
        await add_claim_finalizer(patcher, self.kind)
        pool = self._registry.pools.get(self._registry.claimed_pool(claim))
        await self._writer.ensure_owned(address, patcher.obj, pool, self.kind.resource)
        return await self._write_address_ref(patcher, key)

    async def _reconcile_delete(
        self, patcher: Patcher, key: NamespacedName, claim: IPAddressClaim
    ) -> Result:
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        cluster = await self._caches.live_cluster(key.namespace, claim.cluster_name)
        if self._is_claim_paused(patcher.obj, claim, cluster):
            return Result()
        address = self._addresses.get(key)
        if address is None:
            # The cache may lag: without the live list, the address would be left behind.
            resource = self._addresses.resource
            address = await find_by_name(self._context.client, resource, key)
        if address is not None:
            view = self._dialect.read_address(address)
            if view.claim_name != claim.name or view.pool != claim.pool:
                # It belongs to another claim or pool, and must survive this claim.
                address = None
        result = await self._source.release(patcher, key, claim, address)
        if isinstance(result, Waiting):
            return await self._report_waiting(patcher, result)
        if address is not None:
            await self._writer.delete(address)
        await self._reporter.remove_finalizer(patcher)
        return self._forget(key)

    async def _write_address_ref(self, patcher: Patcher, key: NamespacedName) -> Result:
        """Write the address reference and the Ready condition in a single status update."""
        # A claim with an address that a user created leaves its turn to another claim.
        pool = self._registry.claimed_pool(self._dialect.read_claim(patcher.obj))
        self._registry.usage(pool).waiting_claims.pop(key, None)
        status = self._dialect.set_address_ref(patcher.obj, key.name)
        await patcher.write_status(status, [ready(True, constants.REASON_READY, "")])
        return self._forget(key)

    async def _report_waiting(self, patcher: Patcher, waiting: Waiting) -> Result:
        """Report why there is no address: failures immediately, short waits only after a delay."""
        if waiting.reason not in (REASON_POOL_EXHAUSTED, REASON_ALLOCATION_FAILED):
            return await self._reporter.report_wait(patcher, waiting)
        if waiting.reason == REASON_ALLOCATION_FAILED:
            self._context.events.warn(patcher.obj, waiting.reason, waiting.message)
        await patcher.write_conditions(ready(False, waiting.reason, waiting.message))
        return Result(waiting.requeue_after)

    def _is_claim_paused(self, obj: JSON, claim: IPAddressClaim, cluster: Cluster | None) -> bool:
        """Return whether the claim, its Cluster or its pool is paused (SM-01)."""
        # pause_message reads the annotation of the claim and `spec.paused` of the Cluster; other
        # IPAM providers also obey the Cluster's annotation.
        if cluster is not None and constants.PAUSED_ANNOTATION in cluster.annotations:
            return True
        paused = pause_message(obj, constants.CLAIM_KIND, cluster)
        return bool(paused) or self._registry.is_paused(self._registry.claimed_pool(claim))

    def _conflicting_addresses(
        self, claim: IPAddressClaim, number: int, own: NamespacedName
    ) -> list[NamespacedName]:
        pool = self._registry.claimed_pool(claim)
        return self._registry.conflicting_addresses(pool, number, own)

    def _forget(self, key: NamespacedName) -> Result:
        self._reporter.forget(key)
        self._author.forget(key)
        return Result()


async def add_claim_finalizer(patcher: Patcher, kind: PoolKind) -> None:
    """Add the finalizer, and a label that makes an unowned claim move with its pool (MV-06).

    Only namespaced pools need the label.
    """
    without_owner = not metadata.items(patcher.obj, "metadata", "ownerReferences")
    labelled = without_owner and kind.resource.namespaced
    await patcher.add_finalizer(kind, labels=_MOVE_LABEL if labelled else {})


def _allocation_failed(message: str) -> Waiting:
    return Waiting(REASON_ALLOCATION_FAILED, message, None)


class AllocationSource(Protocol):
    """Protocol for allocating and releasing the addresses of one kind of IP pool."""

    async def allocate(
        self,
        patcher: Patcher,
        key: NamespacedName,
        claim: IPAddressClaim,
        cluster: Cluster | None,
    ) -> Allocation | Waiting:
        """Return an address that is reserved for this claim, or Waiting."""

    async def release(
        self, patcher: Patcher, key: NamespacedName, claim: IPAddressClaim, address: JSON | None
    ) -> Deleted | Waiting:
        """Release a claim's address before its IPAddress is deleted.

        Returns Deleted once the address is released, or else Waiting. ``address`` is the IPAddress,
        or None if there is none.
        """


class RangeSource:
    """Allocates addresses from the ranges in IP pools' specs."""

    def __init__(self, registry: PoolRegistry) -> None:
        self._registry = registry

    async def allocate(
        self,
        patcher: Patcher,
        key: NamespacedName,
        claim: IPAddressClaim,
        cluster: Cluster | None,
    ) -> Allocation | Waiting:
        """Reserve the pool's next free address, or return why the claim must wait."""
        pool = self._registry.claimed_pool(claim)
        number = await self._registry.allocator(pool).reserve(AddressRequest(key, claim.uid))
        ranges = self._registry.usage(pool).ranges
        if isinstance(number, Waiting):
            return number
        if ranges is None:
            return Waiting(REASON_POOL_NOT_READY, "the pool has changed", _RETRY_SECONDS)
        return Allocation(address_of(number), ranges.prefix, ranges.gateway)

    async def release(
        self, patcher: Patcher, key: NamespacedName, claim: IPAddressClaim, address: JSON | None
    ) -> Deleted | Waiting:
        """Do nothing: an address in a range is free as soon as its IPAddress is gone."""
        return Deleted()


class ExternalSource:
    """Allocates addresses in another system, through the author's reconciler."""

    def __init__(self, registry: PoolRegistry, author: AuthorStep[Any]) -> None:
        self._registry = registry
        self._author = author

    async def allocate(
        self,
        patcher: Patcher,
        key: NamespacedName,
        claim: IPAddressClaim,
        cluster: Cluster | None,
    ) -> Allocation | Waiting:
        """Call the reconciler, and reserve the returned address so that no other claim gets it."""
        # A claim with a copied id would get, and later release, the address of the id's holder.
        taken = self._registry.held_ids.find_taken(patcher.obj)
        if taken is not None:
            return taken
        pool_key = self._registry.claimed_pool(claim)
        allocator, usage = self._registry.allocator(pool_key), self._registry.usage(pool_key)
        pool = await self._registry.find_pool(pool_key)
        if usage.problem is not None:
            return allocator.wait_for_pool(key, usage.problem)
        if pool is None:
            return Waiting(REASON_POOL_NOT_READY, "the pool has changed", _RETRY_SECONDS)
        if isinstance(pool._credentials, Waiting):
            return pool._credentials
        # The first side effect happens in the other system, so the finalizer comes first (SM-08).
        await add_claim_finalizer(patcher, self._registry.kind)
        scope = AddressClaim(
            **self._author.scope_fields(patcher.obj),
            pool=pool,
            cluster=cluster,
            taken=usage,
            _credentials=pool._credentials,
        )
        hook = self._author.reconciler.allocate
        allocation = await self._author.call(patcher, hook, scope, Allocation)
        if isinstance(allocation, Waiting):
            return allocation
        request = AddressRequest(key, claim.uid, number_of(allocation.address))
        reserved = await allocator.reserve(request)
        return reserved if isinstance(reserved, Waiting) else allocation

    async def release(
        self, patcher: Patcher, key: NamespacedName, claim: IPAddressClaim, address: JSON | None
    ) -> Deleted | Waiting:
        """Release the address in the other system, before the runtime considers it free."""
        taken = self._registry.held_ids.find_taken(patcher.obj)
        if taken is not None:
            return taken
        identity = self._registry.kind.external_id(patcher.obj)
        pool = self._registry.claimed_pool(claim)
        scope = await self._registry.release_scope(key, identity, pool, address)
        return await self._author.call(patcher, self._author.reconciler.release, scope, Deleted)


class ClaimReporter(StatusReporter):
    """Reports allocation errors with the condition reason that other IPAM providers use (IP-05)."""

    async def report_failure(self, patcher: Patcher, error: Exception) -> None:
        """Report an exception from the author's code; a TerminalError is treated like any other."""
        reason, message = describe_failure(error)
        if not isinstance(error, ReconcileError):
            reason = REASON_ALLOCATION_FAILED
        await self.report_retried_error(patcher, reason, message)
