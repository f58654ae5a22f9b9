"""Delete the provider's IPAddresses whose claims are gone without releasing them (IP-10).

This happens when a user removes the finalizer of a claim, and when a manager that has lost the
lease creates an address too late.
"""

from __future__ import annotations

from collections.abc import Mapping

from capsmith_runtime.contract import constants, external_id, metadata
from capsmith_runtime.contract.core import is_deleted_for_move, pause_message
from capsmith_runtime.contract.ipam import ADDRESS_KIND, CLAIM_KIND, IpamDialect
from capsmith_runtime.ipam.address_index import AddressIndex
from capsmith_runtime.ipam.address_writer import IPAddressWriter, created_by_provider
from capsmith_runtime.ipam.api import ExternalPoolReconciler
from capsmith_runtime.ipam.pool_registry import PoolRegistry
from capsmith_runtime.kube.client import JSON, NamespacedName, NotFound
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_calls import AuthorCalls
from capsmith_runtime.reconcile.base import ControllerContext
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.debounce import StatusDebounce
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.scope_connection import connected

GRACE_SECONDS = 30.0
"""How long to wait for the claim: a restored backup may bring it back after its address."""


class OrphanedAddressController:
    """Reconcile IPAddresses."""

    def __init__(
        self,
        registries: Mapping[str, PoolRegistry],
        index: AddressIndex,
        claims: Informer,
        addresses: Informer,
        dialect: IpamDialect,
        caches: Caches,
        context: ControllerContext,
    ) -> None:
        self._registries = registries
        self._index = index
        self._claims = claims
        self._addresses = addresses
        self._dialect = dialect
        self._caches = caches
        self._context = context
        self._debounce = StatusDebounce(GRACE_SECONDS)
        self._authors = {
            kind: AuthorCalls(registry.reconciler, context.sessions)
            for kind, registry in registries.items()
        }
        self._writer = IPAddressWriter(context.client, dialect, addresses, claims.resource)

    async def reconcile(self, key: NamespacedName) -> Result:
        """Delete an address that has no claim, after a grace period."""
        obj = self._addresses.get(key)
        pool = None
        if obj is not None and not is_deleted_for_move(obj):
            view = self._dialect.address(obj)
            pool = self._index.pool_key(view.pool, view.namespace)
        if obj is None or pool is None or self._claims.get(key) is not None:
            self._debounce.forget(key)
            for author in self._authors.values():
                author.forget(key)
            return Result()
        registry = self._registries[pool.kind]
        group = registry.kind.resource.group
        if not created_by_provider(obj, group):
            return Result()
        left = self._debounce.left(key, CLAIM_KIND)
        if left > 0:
            return Result(left)
        paused = registry.is_paused(pool.key) or await self._is_paused(obj)
        if paused or await self._has_claim(key):
            return Result()
        if isinstance(registry.reconciler, ExternalPoolReconciler):
            identity = metadata.annotations(obj)[external_id.annotation(group)]
            scope = registry.release_scope(key, identity, pool.key, obj)
            author = self._authors[pool.kind]
            with connected(scope, self._context, obj):
                result = await author.call(key, registry.reconciler.release, scope, deletion=True)
            if isinstance(result, Waiting):
                return Result(result.requeue_after)
        await self._writer.delete(obj)
        self._debounce.forget(key)
        return Result()

    async def _is_paused(self, obj: JSON) -> bool:
        name = metadata.labels(obj).get(constants.CLUSTER_NAME_LABEL)
        cluster = await self._caches.live_cluster(metadata.namespace(obj), name)
        return bool(pause_message(obj, ADDRESS_KIND, cluster))

    async def _has_claim(self, key: NamespacedName) -> bool:
        """Ask the API server: the cache may lag behind, or be filtered by another label."""
        try:
            await self._context.client.get(self._claims.resource, key)
        except NotFound:
            return False
        return True
