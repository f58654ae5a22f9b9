"""Index of the addresses in use, by pool, updated by every change of an IPAddress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakValueDictionary

from capsmith_runtime.contract.ipam import IpamDialect
from capsmith_runtime.contract.model import ObjectRef
from capsmith_runtime.ipam.address_ranges import parsed
from capsmith_runtime.ipam.pool_usage import PoolUsage
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType, key_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.store import Delta


class PoolKey(NamedTuple):
    """Identifies a pool of this provider; the namespace is empty for a cluster-scoped pool."""

    kind: str
    key: NamespacedName


@dataclass(frozen=True, slots=True)
class ListedAddress:
    """An IPAddress from a list of the API server, kept until the cache has caught up."""

    key: NamespacedName


class IndexUpdate(NamedTuple):
    """The effect of one changed IPAddress on pools and on other IPAddresses."""

    changed_pools: tuple[PoolKey, ...]
    """Pools whose counts may have changed."""
    freed_pools: tuple[PoolKey, ...]
    """Pools that have one more free address."""
    conflicting_addresses: tuple[NamespacedName, ...]
    """Other IPAddresses with the same address."""


class AddressIndex:
    """The addresses of each pool and their holders."""

    def __init__(
        self, pools: Iterable[ResourceType], dialect: IpamDialect, addresses: Informer
    ) -> None:
        self._pools: Mapping[tuple[str, str], ResourceType] = {
            (resource.group, resource.kind): resource for resource in pools
        }
        self._dialect = dialect
        self._addresses = addresses
        self._usages: dict[PoolKey, PoolUsage] = {}
        # Usages without content, as long as an allocator still refers to them.
        self._released: WeakValueDictionary[PoolKey, PoolUsage] = WeakValueDictionary()
        self._live_list: list[tuple[_IndexedAddress, ListedAddress]] = []
        self._live_list_version = 0

    def pool_key(self, reference: ObjectRef, namespace: str) -> PoolKey | None:
        """Return the referenced pool; None when it is not one of this provider's."""
        resource = self._pools.get((reference.group, reference.kind))
        if resource is None:
            return None
        return PoolKey(
            resource.kind, NamespacedName(namespace if resource.namespaced else "", reference.name)
        )

    def usage(self, pool: PoolKey) -> PoolUsage:
        """Return the usage of a pool, which need not exist."""
        usage = self._usages.get(pool)
        if usage is None:
            usage = self._released.pop(pool, None) or PoolUsage(f"{pool.kind} {pool.key.name}")
            self._usages[pool] = usage
        return usage

    def release_unused(self, pool: PoolKey) -> None:
        """Drop the usage of a pool that does not exist, unless something refers to the pool."""
        usage = self._usages.get(pool)
        if usage is not None and usage.is_unused:
            self._released[pool] = self._usages.pop(pool)

    def update(self, delta: Delta) -> IndexUpdate:
        """Apply the change of an IPAddress and report its effect."""
        before, after = self._indexed(delta.old), self._indexed(delta.new)
        if before == after:
            return IndexUpdate((), (), ())
        # Add before removing: an address that only moves to another pool is never free between.
        if after is not None:
            self.usage(after.pool).add_holder(after.number, delta.key)
        freed = before is not None and self.usage(before.pool).remove_holder(
            before.number, delta.key
        )
        entries = [entry for entry in (before, after) if entry is not None]
        return IndexUpdate(
            changed_pools=tuple(entry.pool for entry in entries),
            freed_pools=(before.pool,) if before is not None and freed else (),
            conflicting_addresses=tuple(
                conflict
                for entry in entries
                for conflict in self.conflicting_addresses(entry.pool, entry.number, delta.key)
            ),
        )

    def add_live_list(self, objects: Iterable[JSON], version: int) -> None:
        """Add all IPAddresses that the API server returned at a resource version."""
        self._remove_live_list()
        for obj in objects:
            entry = self._indexed(obj)
            if entry is not None:
                holder = ListedAddress(key_of(obj))
                self.usage(entry.pool).add_holder(entry.number, holder)
                self._live_list.append((entry, holder))
        self._live_list_version = version

    def drop_outdated_live_list(self) -> tuple[PoolKey, ...]:
        """Drop the live list once the cache is as new; return the pools that gained addresses."""
        if not self._live_list or self._addresses.seen < self._live_list_version:
            return ()
        return self._remove_live_list()

    def conflicting_addresses(
        self, pool: PoolKey, number: int, own: NamespacedName
    ) -> list[NamespacedName]:
        """Return the other IPAddresses that hold an address."""
        keys: dict[NamespacedName, None] = {}
        for holder in self.usage(pool).holders(number):
            key = holder.key if isinstance(holder, ListedAddress) else holder
            if isinstance(key, NamespacedName) and key != own:
                keys[key] = None
        return list(keys)

    def _indexed(self, obj: JSON | None) -> _IndexedAddress | None:
        if obj is None:
            return None
        address = self._dialect.address(obj)
        pool, number = self.pool_key(address.pool, address.namespace), parsed(address.address)
        return _IndexedAddress(pool, number) if pool is not None and number is not None else None

    def _remove_live_list(self) -> tuple[PoolKey, ...]:
        freed = {
            entry.pool: None
            for entry, holder in self._live_list
            if self.usage(entry.pool).remove_holder(entry.number, holder)
        }
        self._live_list = []
        return tuple(freed)


class _IndexedAddress(NamedTuple):
    pool: PoolKey
    number: int
