"""Each pool's addresses in use, with their holders, and the effects of changed IPAddresses."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from capsmith_runtime.contract.ipam import REASON_POOL_NOT_READY, IpamDialect
from capsmith_runtime.contract.model import ObjectRef
from capsmith_runtime.ipam.address_ranges import Address, AddressRanges, number_of, parse_number
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType, key_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.results import Waiting

Holder = Hashable
"""Holder of an address: the key of an IPAddress, a listed address or a reservation."""

_MAX_COUNT: Final = 2**63 - 1
"""The largest number that fits into a status field (int64)."""
MAX_CONFLICTS: Final = 10
"""Maximum number of IPAddresses with the same address that are reconciled after a change."""
NOT_FOUND: Final = "does not exist, or is not watched here"


class AddressCounts(NamedTuple):
    """A pool's address counts: total, used and free.

    Addresses outside the ranges are not counted; without ranges only ``used`` is known.
    """

    total: int
    used: int
    free: int


class PoolUsage:
    """A pool's addresses in use, as numbers; see :func:`.address_ranges.number_of`."""

    def __init__(self, name: str) -> None:
        self.name = name
        """Kind and name of the pool, for messages."""
        self.waiting_claims: dict[NamespacedName, None] = {}
        """Claims that could not get an address, in order of arrival."""
        self.problem: Waiting | None = None
        """Reason why nothing can be allocated, or None if the pool is open."""
        self._ranges: AddressRanges | None = None
        self._holders: dict[int, dict[Holder, None]] = {}
        self._size = 0
        self._used_in_ranges = 0
        # Every number below it is taken, so a search for a free address begins here.
        self._lowest = 0
        # Whether the pool was opened again: the condition of each waiting claim is then outdated,
        # even if no address is left for it.
        self._reopened = False
        self.close(NOT_FOUND)

    @property
    def ranges(self) -> AddressRanges | None:
        """Return the ranges to allocate from.

        Returns None if they are unknown, or if another system allocates.
        """
        return self._ranges

    def open(self, ranges: AddressRanges | None) -> None:
        """Start allocating from ``ranges``, which are None if another system chooses addresses."""
        self._reopened = self._reopened or self.problem is not None
        self.problem = None
        # Counting holders takes time in proportion to the addresses in use, so it is done only if
        # the ranges have changed.
        if ranges != self._ranges:
            self._ranges = ranges
            self._lowest = 0
            self._size = ranges.size if ranges is not None else 0
            self._used_in_ranges = sum(1 for number in self._holders if self._in_ranges(number))

    def close(self, why: str) -> Waiting:
        """Stop allocating, and return the Waiting result for claims; addresses in use stay in use.

        The message of the result is the pool's name followed by ``why``.
        """
        problem = Waiting(REASON_POOL_NOT_READY, f"{self.name} {why}", None)
        self.problem = problem
        return problem

    def add_holder(self, number: int, holder: Holder) -> None:
        """Record that an address is in use; an address may have several holders."""
        holders = self._holders.get(number)
        if holders is None:
            holders = self._holders[number] = {}
            self._used_in_ranges += self._in_ranges(number)
        holders[holder] = None

    def remove_holder(self, number: int, holder: Holder) -> bool:
        """Remove a holder; return whether it was the last one, so that the address is now free."""
        holders = self._holders.get(number, {})
        if holder not in holders:
            return False
        del holders[holder]
        if holders:
            return False
        del self._holders[number]
        self._used_in_ranges -= self._in_ranges(number)
        self._lowest = min(self._lowest, number)
        return True

    def holders(self, number: int) -> tuple[Holder, ...]:
        """Return the objects that hold the address ``number``.

        More than one object means a conflict. The tuple is empty if the address is free.
        """
        return tuple(self._holders.get(number, ()))

    def iterate_holders(self, number: int) -> Iterator[Holder]:
        """Yield the objects that :meth:`holders` returns."""
        return iter(self._holders.get(number, ()))

    def first_free(self) -> int | None:
        """Return the next address to allocate, without reserving it, or None if none is left."""
        if self._ranges is None or self._size == self._used_in_ranges:
            return None
        number = self._ranges.first_free(self._holders, self._lowest)
        if number is not None:
            self._lowest = number
        return number

    def counts(self) -> AddressCounts:
        """Return the pool's counts, each capped at the largest value of a status field."""
        if self._ranges is None:
            return AddressCounts(0, len(self._holders), 0)
        counts = (self._size, self._used_in_ranges, self._size - self._used_in_ranges)
        return AddressCounts(*(min(number, _MAX_COUNT) for number in counts))

    @property
    def in_use(self) -> bool:
        """Return whether any address has a holder, whether inside or outside the ranges."""
        return bool(self._holders)

    @property
    def is_unused(self) -> bool:
        """Return whether the pool is closed and no holder or waiting claim refers to it."""
        return self.problem is not None and not self._holders and not self.waiting_claims

    def pop_waiting_claims(self) -> list[NamespacedName]:
        """Remove and return the claims to reconcile now, at most one for each free address.

        If the pool was just opened again, all claims are returned, because the reason that their
        conditions show no longer applies. A claim that still gets no address is added again.
        """
        if self.problem is not None:
            return []
        # Without a limit, each freed address would reconcile thousands of claims, only one of which
        # gets it.
        limited = self._ranges is not None and not self._reopened
        limit = self.counts().free if limited else len(self.waiting_claims)
        claims = list(self.waiting_claims)[:limit]
        self._reopened = False
        for key in claims:
            del self.waiting_claims[key]
        return claims

    def __contains__(self, address: object) -> bool:
        """Return whether an address is in use."""
        return isinstance(address, Address) and number_of(address) in self._holders

    def _in_ranges(self, number: int) -> bool:
        return self._ranges is not None and number in self._ranges


class PoolKey(NamedTuple):
    """Key of one of this provider's pools; the namespace is empty for a cluster-scoped pool."""

    kind: str
    key: NamespacedName


@dataclass(frozen=True, slots=True)
class ListedAddress:
    """An IPAddress listed from the API server, kept until the cache has caught up."""

    key: NamespacedName


class IndexUpdate(NamedTuple):
    """The effects of a changed IPAddress on pools and on other IPAddresses."""

    changed_pools: tuple[PoolKey, ...]
    """Pools whose counts may have changed."""
    freed_pools: tuple[PoolKey, ...]
    """Pools that have an additional free address."""
    conflicting_addresses: tuple[NamespacedName, ...]
    """Other IPAddresses with the same address, or none if there are many of them."""


class AddressIndex:
    """The addresses in use in each IP pool, and their holders."""

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
        """Return the key of the pool that is referenced, or None if another provider serves it."""
        resource = self._pools.get((reference.group, reference.kind))
        if resource is None:
            return None
        return PoolKey(
            resource.kind, NamespacedName(namespace if resource.namespaced else "", reference.name)
        )

    def usage(self, pool: PoolKey) -> PoolUsage:
        """Return a pool's usage, creating it if necessary; the pool need not exist."""
        usage = self._usages.get(pool)
        if usage is None:
            usage = self._released.pop(pool, None) or PoolUsage(f"{pool.kind} {pool.key.name}")
            self._usages[pool] = usage
        return usage

    def release_unused(self, pool: PoolKey) -> None:
        """Drop a nonexistent pool's usage, unless something still refers to the pool."""
        usage = self._usages.get(pool)
        if usage is not None and usage.is_unused:
            self._released[pool] = self._usages.pop(pool)

    def update(self, delta: Delta) -> IndexUpdate:
        """Apply a change to an IPAddress, and return which pools and IPAddresses it affects."""
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
                conflict for entry in entries for conflict in self._find_affected(entry, delta.key)
            ),
        )

    def add_live_list(self, objects: Iterable[JSON], version: int) -> None:
        """Mark as used the IPAddresses in a list that was read directly from the API server.

        ``version`` is the list's resource version.
        """
        self._remove_live_list()
        for obj in objects:
            entry = self._indexed(obj)
            if entry is not None:
                holder = ListedAddress(key_of(obj))
                self.usage(entry.pool).add_holder(entry.number, holder)
                self._live_list.append((entry, holder))
        self._live_list_version = version

    def drop_outdated_live_list(self) -> tuple[PoolKey, ...]:
        """Drop the live list once the cache has caught up with it.

        Returns the pools in which addresses became free.
        """
        if not self._live_list or self._addresses.seen < self._live_list_version:
            return ()
        return self._remove_live_list()

    def conflicting_addresses(
        self, pool: PoolKey, number: int, own: NamespacedName
    ) -> list[NamespacedName]:
        """Return the keys of IPAddresses other than ``own`` that hold the address ``number``.

        At most ``MAX_CONFLICTS`` and one more are returned.
        """
        keys: dict[NamespacedName, None] = {}
        for holder in self.usage(pool).iterate_holders(number):
            key = holder.key if isinstance(holder, ListedAddress) else holder
            if isinstance(key, NamespacedName) and key != own:
                keys[key] = None
            if len(keys) > MAX_CONFLICTS:
                break
        return list(keys)

    def _find_affected(self, entry: _IndexedAddress, own: NamespacedName) -> list[NamespacedName]:
        """Return the IPAddresses that may have, or have lost, their only conflict with ``own``."""
        found = self.conflicting_addresses(entry.pool, entry.number, own)
        # So many have conflicts with each other, whether there is one more or not. Users may create
        # thousands, all of which would be reconciled after each change of one of them.
        return found if len(found) <= MAX_CONFLICTS else []

    def _indexed(self, obj: JSON | None) -> _IndexedAddress | None:
        if obj is None:
            return None
        address = self._dialect.read_address(obj)
        pool, number = self.pool_key(address.pool, address.namespace), parse_number(address.address)
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
