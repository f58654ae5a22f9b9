"""Reconciles pools: readiness, counts, and deletion once the last address is released."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import is_deleted_for_move, pause_message
from capsmith_runtime.contract.ipam import REASON_POOL_EXHAUSTED, IPAddressClaim
from capsmith_runtime.ipam.address_index import NOT_FOUND, PoolKey, PoolUsage
from capsmith_runtime.ipam.address_ranges import address_of, parse_number
from capsmith_runtime.ipam.allocator import AllocatorContext, PoolAllocator
from capsmith_runtime.ipam.api import AddressRelease, ExternalPoolReconciler, Pool, PoolState
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.held_ids import HeldIds
from capsmith_runtime.reconcile.object_credentials import ObjectCredentials
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner, resync_seconds
from capsmith_runtime.reconcile.sessions import Credentials
from capsmith_runtime.reconcile.status_reporter import StatusReporter

_POOL_GONE = Waiting(constants.REASON_IDENTITY_NOT_FOUND, "the pool is gone", requeue_after=None)


class PoolRegistry:
    """The pools of one kind and their allocators, shared by all controllers that use them."""

    def __init__(
        self, kind: PoolKind, pools: Informer, context: AllocatorContext, held_ids: HeldIds
    ) -> None:
        self.kind = kind
        self.held_ids = held_ids
        """Which claims hold the external ids by which another system knows their addresses."""
        self.pools = pools
        self.reconciler = kind.reconciler()
        self.credentials = ObjectCredentials(kind)
        """Credentials of the pools; connected before the manager starts."""
        self._context = context
        self._allocators: dict[NamespacedName, PoolAllocator] = {}

    def pool_key(self, key: NamespacedName) -> PoolKey:
        """Return the address index's key for a pool of this kind."""
        return PoolKey(self.kind.resource.kind, key)

    def claimed_pool(self, claim: IPAddressClaim) -> NamespacedName:
        """Return the key of the pool that a claim refers to, in the claim's namespace (IP-05)."""
        namespace = claim.namespace if self.kind.resource.namespaced else ""
        return NamespacedName(namespace, claim.pool.name)

    def usage(self, key: NamespacedName) -> PoolUsage:
        """Return a pool's usage, whether or not the pool exists."""
        return self._context.index.usage(self.pool_key(key))

    def allocator(self, key: NamespacedName) -> PoolAllocator:
        """Return a pool's allocator, which is the same object until the pool is gone."""
        allocator = self._allocators.get(key)
        if allocator is None:
            allocator = PoolAllocator(self.pool_key(key), self.pools, self._context)
            self._allocators[key] = allocator
        return allocator

    def forget(self, key: NamespacedName) -> None:
        """Drop a deleted pool's allocator, and its usage unless something still refers to it."""
        self._allocators.pop(key, None)
        self._context.index.release_unused(self.pool_key(key))

    def conflicting_addresses(
        self, key: NamespacedName, number: int, own: NamespacedName
    ) -> list[NamespacedName]:
        """Return the other IPAddresses that hold the same address in a pool."""
        return self._context.index.conflicting_addresses(self.pool_key(key), number, own)

    def requeue_claims(self, key: NamespacedName) -> None:
        """Requeue the waiting claims that the pool can serve now."""
        self._context.requeue_claims(self.pool_key(key))

    def is_paused(self, key: NamespacedName) -> bool:
        """Return whether a pool exists and is paused."""
        obj = self.pools.get(key)
        return obj is not None and is_paused(obj)

    async def pool_scope(self, obj: JSON) -> Pool[Any]:
        """Return the scope of a pool for the reconciler.

        Raises DecodingError if the pool's spec is invalid.
        """
        raw = metadata.mapping(obj, "spec")
        return Pool(
            name=metadata.name(obj),
            namespace=metadata.namespace(obj),
            external_id=self.kind.external_id(obj),
            _status=metadata.mapping(obj, "status"),
            logger=get_logger("author", kind=self.kind.resource.kind, object=metadata.name(obj)),
            spec=decode(self.kind.spec, raw, "spec"),
            raw_spec=raw,
            _credentials=await self.credentials.read(obj),
        )

    async def find_pool(self, key: NamespacedName) -> Pool[Any] | None:
        """Return a pool's scope, or None if the pool does not exist or its spec is invalid.

        The pool's own Ready condition reports an invalid spec.
        """
        obj = self.pools.get(key)
        try:
            return await self.pool_scope(obj) if obj is not None else None
        except DecodingError:
            return None

    async def release_scope(
        self, claim: NamespacedName, identity: str, pool: NamespacedName, address: JSON | None
    ) -> AddressRelease:
        """Create the object that the author's ``release`` receives for a claim.

        ``identity`` is the claim's external id.  The pool's spec and the address are None if the
        pool or the IPAddress no longer exists.
        """
        obj = self.pools.get(pool)
        credentials = await self.credentials.read(obj) if obj is not None else _POOL_GONE
        number = (
            parse_number(metadata.text(address, "spec", "address")) if address is not None else None
        )
        return AddressRelease(
            name=claim.name,
            namespace=claim.namespace,
            external_id=identity,
            logger=get_logger("author", kind=self.kind.resource.kind, object=str(claim)),
            pool_name=pool.name,
            raw_pool_spec=metadata.mapping(obj, "spec") if obj is not None else None,
            address=address_of(number) if number is not None else None,
            _credentials=credentials if self.credentials.is_used else Credentials(),
        )


def is_paused(pool: JSON) -> bool:
    """Return whether a pool is paused, so that nothing may be allocated or released.

    See SM-01 and MV-08.
    """
    return is_deleted_for_move(pool) or bool(pause_message(pool, "", None))


_IN_USE = Waiting("AddressesInUse", "addresses of the pool are in use")


class _LastState(NamedTuple):
    """The last state that a pool's reconciler returned."""

    version: tuple[str, int]
    """UID and generation of the pool that the reconciler was called for."""
    state: PoolState
    due: float
    """Time of the next call, whatever changes until then."""


class IPPoolController:
    """Reconciles one kind of IP pool."""

    def __init__(self, registry: PoolRegistry, context: ControllerContext) -> None:
        self.kind = kind = registry.kind
        self._registry = registry
        self._context = context
        self._changed_counts: set[NamespacedName] = set()
        self._due_calls: set[NamespacedName] = set()
        """Pools whose next reconcile must call the reconciler, even if counts have changed too."""
        self._states: dict[NamespacedName, _LastState] = {}
        self._reporter = StatusReporter(kind, context)
        self._author = AuthorStep(kind, context, self._reporter, registry.reconciler)
        self._runner = ReconcileRunner(
            kind,
            registry.pools,
            context,
            self._reporter,
            new_patcher=partial(Patcher, context.client, registry.pools, context.writer),
            forget=self._forget,
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile a pool: its readiness, its counts and its deletion."""
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        obj, usage = patcher.obj, self._registry.usage(key)
        if is_deleted_for_move(obj):
            # Closed before anything else: claims served now would be missing in the target cluster.
            usage.close("is being moved")
            return Result()
        if metadata.is_deleting(obj):
            return await self._reconcile_delete(patcher, key)
        if await self._reporter.ensure_paused_condition(patcher, None):
            usage.close("is paused")
            return Result()
        record = self._registry.credentials.build_own_record(patcher.obj)
        await patcher.add_finalizer(self.kind, further=record)
        state = await self._state(patcher, key)
        if isinstance(state, PoolState):
            return await self._apply_state(patcher, key, state)
        usage.close(f"is not ready: {state.message or state.reason}")
        # An invalid spec is an error for the user, not a wait: no retry helps until the spec
        # changes.
        if state.reason == constants.REASON_INVALID_SPEC:
            await self._reporter.report_error(patcher, state.reason, state.message)
            return Result()
        return await self._reporter.report_wait(patcher, state)

    async def _apply_state(self, patcher: Patcher, key: NamespacedName, state: PoolState) -> Result:
        usage = self._registry.usage(key)
        if state.ready:
            usage.open(state.ranges)
            # Claims may have waited for this pool to open, and no other event wakes them.
            self._registry.requeue_claims(key)
        else:
            usage.close(f"is not ready: {state.message or state.reason}")
        await self._registry.allocator(key).sync_status()
        patcher.obj = self._registry.pools.get(key) or patcher.obj
        # Without ranges another system allocates, and `counts` reports no free address at all.
        if state.ready and usage.ranges is not None and usage.counts().free == 0:
            state = replace(
                state,
                ready=False,
                reason=REASON_POOL_EXHAUSTED,
                message="all addresses are taken",
            )
        status = self._reporter.author_status(patcher, state.status)
        return await self._reporter.report_state(patcher, status, state)

    async def _state(self, patcher: Patcher, key: NamespacedName) -> PoolState | Waiting:
        """Return the reconciler's state, or the last one if only the counts are needed."""
        version, now = (metadata.uid(patcher.obj), metadata.generation(patcher.obj)), monotonic()
        counts_only = key in self._changed_counts and key not in self._due_calls
        self._changed_counts.discard(key)
        self._due_calls.discard(key)
        # Only a PoolState is kept: after a wait or an error, even a change of the counts has to
        # call the author's reconciler again.
        last = self._states.pop(key, None)
        if counts_only and last is not None and last.version == version and now < last.due:
            self._states[key] = last
            # The queue has replaced the time of the next call by that of this reconcile.
            is_timed = last.state.requeue_after is not None
            return replace(last.state, requeue_after=last.due - now) if is_timed else last.state
        state = await self._call_reconciler(patcher)
        if isinstance(state, PoolState):
            seconds = state.requeue_after
            seconds = resync_seconds(self._context) if seconds is None else seconds
            due = math.inf if seconds is None else monotonic() + seconds
            self._states[key] = _LastState(version, state, due)
        return state

    async def _call_reconciler(self, patcher: Patcher) -> PoolState | Waiting:
        try:
            pool = await self._registry.pool_scope(patcher.obj)
        except DecodingError as error:
            return Waiting(constants.REASON_INVALID_SPEC, str(error), None)
        if isinstance(pool._credentials, Waiting):
            return pool._credentials
        reconciler = self._author.reconciler
        state = await self._author.call(patcher, reconciler.reconcile_normal, pool, PoolState)
        external = isinstance(reconciler, ExternalPoolReconciler)
        if isinstance(state, PoolState) and (state.ranges is None) is not external:
            message = "a pool has ranges unless another system allocates its addresses"
            await self._reporter.refuse(patcher, constants.REASON_INVALID_RESULT, message)
        return state

    async def _reconcile_delete(self, patcher: Patcher, key: NamespacedName) -> Result:
        """Keep the finalizer until the last address is released."""
        usage = self._registry.usage(key)
        # Before the first await: a claim served during the await would hold up the deletion.
        usage.close("is being deleted")
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        if await self._reporter.ensure_paused_condition(patcher, None):
            return Result()
        allocator = self._registry.allocator(key)
        await allocator.sync_status()
        patcher.obj = self._registry.pools.get(key) or patcher.obj
        # Counted after reservations were synced: a reserved address may still become an IPAddress.
        if usage.in_use:
            waiting = _IN_USE if allocator.is_loaded else replace(_IN_USE, requeue_after=1.0)
            return await self._reporter.report_wait(patcher, waiting)
        pool = await self._registry.find_pool(key)
        if pool is None:
            message = "the spec cannot be read"
            await self._reporter.report_error(patcher, constants.REASON_INVALID_SPEC, message)
            return Result()
        hook = self._author.reconciler.reconcile_delete
        result = await self._author.call(patcher, hook, pool, Deleted)
        if isinstance(result, Waiting):
            return await self._reporter.report_wait(patcher, result)
        await self._reporter.remove_finalizer(patcher)
        return self._forget(key)

    def _forget(self, key: NamespacedName) -> Result:
        # The usage outlives the pool while claims wait, so that they report why they get no
        # address.
        self._registry.usage(key).close(NOT_FOUND)
        self._registry.forget(key)
        self._states.pop(key, None)
        self._changed_counts.discard(key)
        self._due_calls.discard(key)
        self._reporter.forget(key)
        self._author.forget(key)
        return Result()

    def request_counts(self, key: NamespacedName) -> None:
        """Make the next reconcile update the counts, and only these unless a call is due."""
        self._changed_counts.add(key)

    def request_full_reconcile(self, key: NamespacedName) -> None:
        """Make the next reconcile call the reconciler."""
        self._due_calls.add(key)
