"""An IPAM provider's controllers for pools, claims and addresses."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.constants import ADDRESS_KIND, CLAIM_KIND
from capsmith_runtime.contract.ipam import DIALECTS
from capsmith_runtime.ipam.address_index import AddressIndex, PoolKey
from capsmith_runtime.ipam.addresses import OrphanedAddressController, is_owned_by_claim
from capsmith_runtime.ipam.allocator import AllocatorContext, LiveAddressList
from capsmith_runtime.ipam.claims import ClaimController
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.ipam.pools import IPPoolController, PoolRegistry, is_paused
from capsmith_runtime.kube.client import (
    EVERYTHING,
    JSON,
    KubeClient,
    NamespacedName,
    ResourceType,
    Selections,
    key_of,
)
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.caches import BY_CLUSTER, Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile
from capsmith_runtime.reconcile.held_ids import HeldIds
from capsmith_runtime.reconcile.kinds import address_type, claim_type
from capsmith_runtime.reconcile.watches import on_change

_BY_POOL = "address pool"
_COUNT_SECONDS = 0.5
"""Seconds before a pool's counts are updated, because hundreds of addresses may change together."""


class IPAMControllers:
    """Creates the controllers for a provider's pool kinds."""

    def __init__(self, kinds: Sequence[PoolKind]) -> None:
        self.kinds = kinds

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the controllers for one manager."""
        return IPAMGroup(self.kinds, caches, context)


class IPAMGroup(ControllerGroup):
    """The caches, controllers and watches for pools, claims and addresses."""

    def __init__(
        self, kinds: Sequence[PoolKind], caches: Caches, context: ControllerContext
    ) -> None:
        self._caches = caches
        self._dialect = dialect = DIALECTS[caches.reader.version]
        self._claims = caches.informer(
            claim_type(dialect.version),
            caches.scope.select_own(),
            {BY_CLUSTER: self._index_by_cluster, _BY_POOL: self._index_by_pool},
        )
        cluster_scoped = any(not kind.resource.namespaced for kind in kinds)
        # A cluster-scoped pool has addresses in all namespaces, including those not watched here.
        selections = (EVERYTHING,) if cluster_scoped else caches.scope.select()
        self._addresses = caches.informer(address_type(dialect.version), selections)
        self._index = AddressIndex([kind.resource for kind in kinds], dialect, self._addresses)
        allocators = self._allocator_context(context.client, selections)
        held_ids = HeldIds(groups={kind.resource.group for kind in kinds})
        held_ids.index(self._claims, has_provider_ids=False)
        self._registries = {
            kind.resource.kind: PoolRegistry(
                kind, self._pool_informer(kind.resource), allocators, held_ids
            )
            for kind in kinds
        }
        self._pools = {
            name: IPPoolController(registry, context) for name, registry in self._registries.items()
        }
        self._claim_controllers = {
            name: ClaimController(registry, self._claims, self._addresses, dialect, caches, context)
            for name, registry in self._registries.items()
        }
        self._orphans = OrphanedAddressController(
            self._registries, self._index, self._claims, self._addresses, dialect, caches, context
        )
        self._queues: Queues = {}

    def _allocator_context(self, client: KubeClient, selections: Selections) -> AllocatorContext:
        resource = self._addresses.resource
        return AllocatorContext(
            client=client,
            index=self._index,
            live_list=LiveAddressList(client, resource, selections, self._index),
            claims=self._claims,
            addresses=self._addresses,
            requeue_claims=self._requeue_claims,
            identity=str(uuid.uuid4()),
        )

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the informers for claims, addresses and each kind of pool."""
        pools = (registry.pools for registry in self._registries.values())
        return (self._claims, self._addresses, *pools)

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Connect the kinds of pools that use identities to the group that serves credentials."""
        for registry in self._registries.values():
            registry.credentials.connect(groups, registry.pools, self._on_credentials)

    def _on_credentials(self, pool: JSON) -> None:
        """Requeue a pool and its claims after a change of its identity."""
        self._pools[pool["kind"]].request_full_reconcile(key_of(pool))
        self._queues[pool["kind"]].add(key_of(pool))
        self._enqueue_claims_of(pool)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield each reconciler with its queue's name; all claims share one queue."""
        yield CLAIM_KIND, self._reconcile_claim
        yield ADDRESS_KIND, self._orphans.reconcile
        for name, pools in self._pools.items():
            yield name, pools.reconcile

    def setup_watches(self, queues: Queues) -> None:
        """Register the handlers for claims, addresses, pools and Clusters."""
        self._queues = queues
        claims = queues[CLAIM_KIND]
        self._claims.add_handler(lambda delta: claims.add(delta.key), own_writes=False)
        # Also for own writes: one of them lets a deleted claim go, and other claims may be waiting
        # for its address.
        self._claims.add_handler(self._on_claim)
        self._addresses.add_handler(self._on_address)
        self._caches.clusters.add_handler(on_change(self._pause_flags, self._on_cluster))
        for name, registry in self._registries.items():
            registry.pools.add_handler(self._pool_handler(name), own_writes=False)
            registry.pools.add_handler(on_change(is_paused, self._enqueue_claims_of))
            registry.pools.add_handler(on_change(is_paused, self._enqueue_paused_addresses))

    async def _reconcile_claim(self, key: NamespacedName) -> Result:
        obj = self._claims.get(key)
        pool = self._pool_key(obj) if obj is not None else None
        if pool is None:
            return Result()
        return await self._claim_controllers[pool.kind].reconcile(key)

    def _pool_informer(self, pools: ResourceType) -> Informer:
        own = self._caches.scope.select_own(namespaced=pools.namespaced)
        return self._caches.informer(pools, own)

    def _pool_handler(self, name: str) -> Callable[[Delta], None]:
        def handle(delta: Delta) -> None:
            self._pools[name].request_full_reconcile(delta.key)
            self._queues[name].add(delta.key)

        return handle

    def _enqueue_claims_of(self, obj: JSON) -> None:
        """Requeue a pool's claims: a pause or a missing identity stops allocation and release."""
        for claim in self._claims.by_index(_BY_POOL, str(PoolKey(obj["kind"], key_of(obj)))):
            self._queues[CLAIM_KIND].add(key_of(claim))

    def _on_claim(self, delta: Delta) -> None:
        if delta.new is not None and not metadata.is_deleting(delta.new):
            return
        pool = self._pool_key(delta.latest)
        if pool is None:
            return
        # Its place in the queue, or the address reserved for it, goes to another claim.
        self._index.usage(pool).waiting_claims.pop(delta.key, None)
        self._requeue_claims(pool)
        self._requeue_counts(pool)
        self._queues[ADDRESS_KIND].add(delta.key)

    def _on_address(self, delta: Delta) -> None:
        update = self._index.update(delta)
        for pool in (*update.freed_pools, *self._index.drop_outdated_live_list()):
            self._requeue_claims(pool)
        for pool in update.changed_pools:
            self._requeue_counts(pool)
        # An IPAddress has the name of its claim, so one key finds both.
        for key in (delta.key, *update.conflicting_addresses):
            claim = self._claims.get(key)
            if claim is None:
                self._queues[ADDRESS_KIND].add(key)
            elif delta.new is None or not self._dialect.read_claim(claim).address_name:
                self._queues[CLAIM_KIND].add(key)
            elif key == delta.key and not is_owned_by_claim(delta.new, claim):
                self._queues[CLAIM_KIND].add(key)  # it has lost its owners (SM-11)

    def _on_cluster(self, obj: JSON) -> None:
        value = f"{metadata.namespace(obj)}/{metadata.name(obj)}"
        for claim in self._claims.by_index(BY_CLUSTER, value):
            self._queues[CLAIM_KIND].add(key_of(claim))
        self._enqueue_paused_addresses(obj)

    def _enqueue_paused_addresses(self, obj: JSON) -> None:
        """Requeue the addresses without claims that some pause holds, as ``obj`` has changed."""
        # Without an index: addresses rarely lose their claims, and pauses rarely end.
        for key in self._orphans.pop_paused():
            self._queues[ADDRESS_KIND].add(key)

    def _pause_flags(self, obj: JSON) -> tuple[bool, bool]:
        paused = self._caches.reader.read_cluster(obj).paused
        return paused, constants.PAUSED_ANNOTATION in metadata.annotations(obj)

    def _requeue_claims(self, pool: PoolKey) -> None:
        for key in self._index.usage(pool).pop_waiting_claims():
            self._queues[CLAIM_KIND].add(key)

    def _requeue_counts(self, pool: PoolKey) -> None:
        self._pools[pool.kind].request_counts(pool.key)
        self._queues[pool.kind].add_after(pool.key, _COUNT_SECONDS)

    def _pool_key(self, claim: JSON) -> PoolKey | None:
        view = self._dialect.read_claim(claim)
        return self._index.pool_key(view.pool, view.namespace)

    def _index_by_pool(self, claim: JSON) -> Iterable[str]:
        pool = self._pool_key(claim)
        if pool is not None:
            yield str(pool)

    def _index_by_cluster(self, claim: JSON) -> Iterable[str]:
        view = self._dialect.read_claim(claim)
        if view.cluster_name:
            yield f"{view.namespace}/{view.cluster_name}"
