"""The pools of one kind: reconciler, allocators, usage, and the scopes of the reconciler."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.api.decoding import DecodingError, decode
from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import is_deleted_for_move, pause_message
from capsmith_runtime.ipam.address_index import PoolKey
from capsmith_runtime.ipam.address_ranges import address_of, parsed
from capsmith_runtime.ipam.allocator import AllocatorContext, PoolAllocator
from capsmith_runtime.ipam.api import AddressRelease, Pool
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.ipam.pool_usage import PoolUsage
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger


class PoolRegistry:
    """The pools of one kind; all controllers that deal with them share one reconciler."""

    def __init__(self, kind: PoolKind, pools: Informer, context: AllocatorContext) -> None:
        self.kind = kind
        self.pools = pools
        self.reconciler = kind.reconciler()
        self._context = context
        self._allocators: dict[NamespacedName, PoolAllocator] = {}

    def pool_key(self, key: NamespacedName) -> PoolKey:
        """Return the key in the address index of a pool of this kind."""
        return PoolKey(self.kind.resource.kind, key)

    def usage(self, key: NamespacedName) -> PoolUsage:
        """Return the usage of a pool, which need not exist."""
        return self._context.index.usage(self.pool_key(key))

    def allocator(self, key: NamespacedName) -> PoolAllocator:
        """Return the allocator of a pool."""
        allocator = self._allocators.get(key)
        if allocator is None:
            allocator = PoolAllocator(self.pool_key(key), self.pools, self._context)
            self._allocators[key] = allocator
        return allocator

    def forget(self, key: NamespacedName) -> None:
        """Drop the allocator of a pool that is gone, and its usage unless something needs it."""
        self._allocators.pop(key, None)
        self._context.index.release_unused(self.pool_key(key))

    def conflicting_addresses(
        self, key: NamespacedName, number: int, own: NamespacedName
    ) -> list[NamespacedName]:
        """Return the other IPAddresses that hold an address of a pool."""
        return self._context.index.conflicting_addresses(self.pool_key(key), number, own)

    def requeue_claims(self, key: NamespacedName) -> None:
        """Requeue the waiting claims that the pool can serve now."""
        self._context.requeue_claims(self.pool_key(key))

    def is_paused(self, key: NamespacedName) -> bool:
        """Return whether a pool exists and is paused."""
        obj = self.pools.get(key)
        return obj is not None and is_paused(obj)

    def pool_scope(self, obj: JSON) -> Pool[Any]:
        """Return a pool in the form that the reconciler gets.  Raises DecodingError."""
        raw = metadata.mapping(obj, "spec")
        return Pool(
            name=metadata.name(obj),
            namespace=metadata.namespace(obj),
            external_id=self.kind.external_id(obj),
            _status=metadata.mapping(obj, "status"),
            logger=get_logger("author", kind=self.kind.resource.kind, object=metadata.name(obj)),
            spec=decode(self.kind.spec, raw, "spec"),
            raw_spec=raw,
        )

    def find_pool(self, key: NamespacedName) -> Pool[Any] | None:
        """Return a pool; None if its spec is invalid, which its own condition reports."""
        obj = self.pools.get(key)
        try:
            return self.pool_scope(obj) if obj is not None else None
        except DecodingError:
            return None

    def release_scope(
        self, claim: NamespacedName, identity: str, pool: NamespacedName, address: JSON | None
    ) -> AddressRelease:
        """Return the release of a claim in the form that the reconciler gets."""
        obj = self.pools.get(pool)
        number = parsed(metadata.text(address, "spec", "address")) if address is not None else None
        return AddressRelease(
            name=claim.name,
            namespace=claim.namespace,
            external_id=identity,
            logger=get_logger("author", kind=self.kind.resource.kind, object=str(claim)),
            pool_name=pool.name,
            raw_pool_spec=metadata.mapping(obj, "spec") if obj is not None else None,
            address=address_of(number) if number is not None else None,
        )


def is_paused(pool: JSON) -> bool:
    """Return whether nothing may be allocated from a pool or released to it (SM-01, MV-08)."""
    return is_deleted_for_move(pool) or bool(pause_message(pool, "", None))
