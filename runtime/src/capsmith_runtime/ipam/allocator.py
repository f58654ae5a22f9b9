"""Allocation from a pool, with optimistic locking based on the pool's resource version.

All claims that request an address at the same time share a single write of the pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.ipam import (
    REASON_ALLOCATION_FAILED,
    REASON_POOL_EXHAUSTED,
    REASON_POOL_NOT_READY,
)
from capsmith_runtime.errors import (
    ConflictError,
    NotFoundError,
    ResourceExpiredError,
    create_api_error,
)
from capsmith_runtime.ipam.address_index import NOT_FOUND, AddressIndex, PoolKey, PoolUsage
from capsmith_runtime.ipam.address_ranges import address_of, parse_number
from capsmith_runtime.ipam.allocation_store import Allocation, AllocationStore
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    ResourceType,
    Selection,
    Selections,
)
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.results import Waiting


@dataclass(frozen=True, slots=True)
class Reservation:
    """An address that is reserved for the IPAddress with the claim's name."""

    number: int
    claim: NamespacedName
    uid: str
    """UID of the claim."""


@dataclass(frozen=True, slots=True)
class ReservationHolder:
    """Marks a reserved address as in use until its IPAddress exists."""

    uid: str


class Reservations:
    """One pool's reservations, keyed by the claim's UID; a reserved address counts as in use."""

    def __init__(self, usage: PoolUsage) -> None:
        self._usage = usage
        self._by_uid: dict[str, Reservation] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def get(self, uid: str) -> Reservation | None:
        """Return a claim's reservation, or None if there is none."""
        return self._by_uid.get(uid)

    def snapshot(self) -> Mapping[str, Reservation]:
        """Return a copy of all reservations, which can be passed to :meth:`replace_all`."""
        return dict(self._by_uid)

    def put(self, reservation: Reservation) -> None:
        """Add a reservation, replacing an earlier one for the same claim."""
        before = self._by_uid.get(reservation.uid)
        if before == reservation:
            return
        if before is not None:
            self._remove(before)
        self._by_uid[reservation.uid] = reservation
        self._usage.add_holder(reservation.number, ReservationHolder(reservation.uid))

    def replace_all(self, reservations: Mapping[str, Reservation]) -> bool:
        """Replace all reservations with these, and return whether an address became free."""
        obsolete = [item for uid, item in self._by_uid.items() if reservations.get(uid) != item]
        freed = [self._remove(item) for item in obsolete]
        for reservation in reservations.values():
            self.put(reservation)
        return any(freed)

    def entries(self) -> list[JSON]:
        """Return the reservations as entries of the pool's allocation."""
        return [
            {
                "address": str(address_of(item.number)),
                "claimUID": item.uid,
                "claimName": item.claim.name,
                "claimNamespace": item.claim.namespace,
            }
            for item in self._by_uid.values()
        ]

    def _remove(self, reservation: Reservation) -> bool:
        del self._by_uid[reservation.uid]
        return self._usage.remove_holder(reservation.number, ReservationHolder(reservation.uid))


def read_reservations(allocation: Allocation) -> Iterator[Reservation]:
    """Yield all reservations in a pool's allocation, regardless of which manager wrote them."""
    for entry in metadata.items(allocation, "reservations"):
        number = parse_number(metadata.text(entry, "address"))
        if number is not None:
            claim = NamespacedName(
                metadata.text(entry, "claimNamespace"), metadata.text(entry, "claimName")
            )
            yield Reservation(number, claim, metadata.text(entry, "claimUID"))


_PAGE = 500


class LiveAddressList:
    """Adds IPAddresses that the API server has, but the cache does not have yet, to the index."""

    def __init__(
        self,
        client: KubeClient,
        resource: ResourceType,
        selections: Selections,
        index: AddressIndex,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selections = selections
        self._index = index
        self._lock = asyncio.Lock()
        self._requested = 0
        self._completed = 0

    async def refresh(self) -> None:
        """Wait until the index has every IPAddress that existed at the time of the call.

        The IPAddresses are listed from the API server; waiting callers share the next list. A list
        that started before the call does not count, because it may miss the newest addresses.
        """
        self._requested += 1
        ticket = self._requested
        async with self._lock:
            if self._completed >= ticket:
                return
            requested = self._requested
            objects, versions = [], [0]
            for selection in self._selections:
                listed, version = await self._list(selection)
                objects += listed
                versions.append(version)
            self._index.add_live_list(objects, max(versions))
            self._completed = requested

    async def _list(self, selection: Selection) -> tuple[list[JSON], int]:
        objects: list[JSON] = []
        token, limit = "", _PAGE
        while True:
            try:
                page = await self._client.list_page(
                    self._resource, selection, limit=limit, token=token
                )
            except ResourceExpiredError:
                if not token:
                    raise
                # The remaining pages have expired: request the whole list at once.
                objects, token, limit = [], "", 0
                continue
            objects += page.items
            token = page.token
            if not token:
                return objects, int(page.resource_version)


_ATTEMPTS: Final = 5
_BUSY_SECONDS: Final = 1.0
MAX_LOOKUPS: Final = 50
"""Maximum number of claims to look up on the API server in one reconcile."""


@dataclass(frozen=True, slots=True)
class AddressRequest:
    """A claim's request for an address from a pool."""

    claim: NamespacedName
    uid: str
    number: int | None = None
    """Number of the address that another system chose, or None to use the next free address."""


@dataclass(frozen=True, slots=True)
class AllocatorContext:
    """Dependencies shared by the allocators of all pools."""

    client: KubeClient
    index: AddressIndex
    live_list: LiveAddressList
    claims: Informer
    addresses: Informer
    requeue_claims: Callable[[PoolKey], None]
    """Function that is called when a pool may have addresses for waiting claims."""
    identity: str
    """Identity of this process, which no other process ever has."""


class PoolAllocator:
    """Allocates one pool's addresses."""

    def __init__(self, pool: PoolKey, pools: Informer, context: AllocatorContext) -> None:
        self._pool = pool
        self._pools = pools
        self._context = context
        self._store = AllocationStore(pool, pools, context.client)
        # They refer to the usage, so that the index returns the same one while this allocator
        # exists.
        self._reservations = Reservations(self._usage)
        self._requests: dict[str, tuple[AddressRequest, asyncio.Future[int | Waiting]]] = {}
        self._lock = asyncio.Lock()
        self.is_loaded = True
        """Whether each reservation was checked when they were last loaded."""
        # UID of the pool for which this process is the holder and has listed all addresses.
        self._allocator_epoch = ""

    @property
    def _usage(self) -> PoolUsage:
        return self._context.index.usage(self._pool)

    async def reserve(self, request: AddressRequest) -> int | Waiting:
        """Reserve an address for a claim and return its number, or return Waiting.

        The same claim gets the same address until its IPAddress exists. If the claim must wait for
        an event, it is added to the pool's waiting claims. Raises ApiError if a request fails.
        """
        if self._usage.problem is not None:
            return self.wait_for_pool(request.claim, self._usage.problem)
        answer: asyncio.Future[int | Waiting] = asyncio.get_running_loop().create_future()
        self._requests[request.uid] = request, answer
        try:
            async with self._lock:
                if not answer.done():
                    await asyncio.sleep(0)  # let requests that are about to be made join the batch
                    await self._serve_requests()
            return answer.result()
        finally:
            self._requests.pop(request.uid, None)

    def wait_for_pool(self, claim: NamespacedName, waiting: Waiting) -> Waiting:
        """Add a claim to the pool's waiting claims, and return ``waiting``."""
        # Without an await in between, so that no address becomes free before the claim waits.
        self._usage.waiting_claims[claim] = None
        return waiting

    async def sync_status(self) -> None:
        """Write the counts and remove completed reservations.

        Reservations are removed only while this manager is the pool's holder.  This call makes it
        the holder only of a pool that is being deleted.  Raises ApiError if a
        request fails.
        """
        async with self._lock:
            pool = self._pools.get(self._pool.key)
            if pool is None or self._requests:
                return  # serving the requests writes all of this as well
            await self._load_reservations(pool)
            # A pool in deletion allocates nothing, but the reservations of a former holder would
            # keep its finalizer forever.
            if self._is_holder(pool) or metadata.is_deleting(pool):
                with suppress(ConflictError):  # the other write's event triggers another attempt
                    await self._write_allocation(await self._become_holder(pool))
            elif not self._store.has_counts(pool, self._counts()):
                await self._store.write_counts(pool, self._counts())

    async def _serve_requests(self) -> None:
        """Respond to all requests, after their reservations are written.

        Raises ConflictError if others change the pool during each attempt.
        """
        pool = self._pools.get(self._pool.key)
        for _ in range(_ATTEMPTS):
            if pool is None:
                return self._reject_all()
            if metadata.is_deleting(pool):
                self._usage.close("is being deleted")
            try:
                return await self._write_allocation(await self._become_holder(pool))
            except ConflictError:
                pool = await self._read_pool()
            except NotFoundError:
                pool = None
        raise create_api_error(409, "Conflict", f"{self._usage.name} changes too often")

    async def _become_holder(self, pool: JSON) -> JSON:
        """Make this process the pool's holder, so that any other process's writes conflict.

        The list must come after that write.  Addresses that a former holder created before the
        write are in the list, and after it the former holder can no longer reserve any.
        """
        context = self._context
        if self._is_holder(pool):
            return pool
        # Until the list is complete, addresses of the former holder may be missing here.
        self._allocator_epoch = ""
        if self._read_holder(pool) != context.identity:
            allocation = {**self._store.read(pool), "holder": context.identity}
            pool = await self._store.write(pool, allocation)
        await context.live_list.refresh()
        self._allocator_epoch = metadata.uid(pool)
        return pool

    def _is_holder(self, pool: JSON) -> bool:
        same_epoch = self._allocator_epoch == metadata.uid(pool)
        return self._read_holder(pool) == self._context.identity and same_epoch

    def _read_holder(self, pool: JSON) -> str:
        return metadata.text(self._store.read(pool), "holder")

    async def _write_allocation(self, pool: JSON) -> None:
        await self._load_reservations(pool)
        before = self._reservations.snapshot()
        answers = [
            (request, answer, self._choose_address(request))
            for request, answer in self._requests.values()
            if not answer.done()
        ]
        allocation = {
            "holder": self._context.identity,
            "reservations": self._reservations.entries(),
        }
        # No request is answered before this write: an address counts as reserved only when the API
        # server has it, under a version that no other manager has written since.
        try:
            await self._store.write(pool, allocation, self._counts())
        except BaseException:
            # Even a cancelled write may have arrived.  The next attempt reads the pool again if its
            # version is outdated, and then finds what was written.
            self._reservations.replace_all(before)
            raise
        for request, answer, result in answers:
            if not isinstance(result, Waiting):
                # With an address, its place in the line would cost the next claim its turn.
                self._usage.waiting_claims.pop(request.claim, None)
            if not answer.done():
                answer.set_result(result)

    async def _load_reservations(self, pool: JSON) -> None:
        """Load all managers' valid reservations from the pool's allocation."""
        valid: dict[str, Reservation] = {}
        lookups = 0
        for reservation in read_reservations(self._store.read(pool)):
            is_completed = self._is_completed_in_cache(reservation)
            if is_completed is None:
                lookups += 1
                # Users can write the allocation.  What is not looked up yet keeps its address.
                if lookups <= MAX_LOOKUPS:
                    is_completed = not await self._has_claim(reservation)
            if not is_completed:
                valid[reservation.uid] = reservation
        self.is_loaded = lookups <= MAX_LOOKUPS
        self._drop_live_list()
        if self._reservations.replace_all(valid):
            self._context.requeue_claims(self._pool)

    def _drop_live_list(self) -> None:
        for pool in self._context.index.drop_outdated_live_list():
            self._context.requeue_claims(pool)

    def _is_completed_in_cache(self, reservation: Reservation) -> bool | None:
        """Return whether a reservation can no longer lead to an IPAddress.

        Either an IPAddress has its name, or the claim is gone; then None is returned, because the
        cache may lag behind.  In the second case a manager that has lost the lease may still create
        one, but that belongs to no claim and is removed.
        """
        address = self._context.addresses.get(reservation.claim)
        if address is not None and not metadata.is_deleting(address):
            return True
        # A claim is in the namespace of its pool.
        if self._pool.key.namespace not in ("", reservation.claim.namespace):
            return True
        claim = self._context.claims.get(reservation.claim)
        return False if claim is not None and metadata.uid(claim) == reservation.uid else None

    async def _has_claim(self, reservation: Reservation) -> bool:
        """Return whether the claim of a reservation exists on the API server."""
        try:
            resource = self._context.claims.resource
            claim = await self._context.client.get(resource, reservation.claim)
        except NotFoundError:
            return False
        return metadata.uid(claim) == reservation.uid

    def _choose_address(self, request: AddressRequest) -> int | Waiting:
        usage, chosen = self._usage, request.number
        reserved = self._reservations.get(request.uid)
        # After a crash between reservation and IPAddress, the claim gets the same address again.
        if reserved is not None and chosen in (None, reserved.number):
            return reserved.number
        if usage.problem is not None:
            return self.wait_for_pool(request.claim, usage.problem)
        # An API object has a limited size, and each reservation is an entry of the allocation.
        if len(self._reservations) >= self._store.max_reservations:
            return Waiting(REASON_POOL_NOT_READY, f"{usage.name} is busy", _BUSY_SECONDS)
        number = usage.first_free() if chosen is None else chosen
        if number is None:
            message = f"all addresses of {usage.name} are taken"
            waiting = Waiting(REASON_POOL_EXHAUSTED, message, None)
            return self.wait_for_pool(request.claim, waiting)
        if chosen is not None and usage.holders(number):
            message = f"{address_of(number)}, which {usage.name} has chosen, is taken"
            return Waiting(REASON_ALLOCATION_FAILED, message)
        self._reservations.put(Reservation(number, request.claim, request.uid))
        return number

    def _reject_all(self) -> None:
        waiting = self._usage.close(NOT_FOUND)
        self._reservations.replace_all({})
        for request, answer in self._requests.values():
            if not answer.done():
                answer.set_result(self.wait_for_pool(request.claim, waiting))

    def _counts(self) -> JSON:
        counts = self._usage.counts()
        return counts._asdict() if self._usage.ranges is not None else {"used": counts.used}

    async def _read_pool(self) -> JSON | None:
        try:
            pool = await self._context.client.get(self._pools.resource, self._pool.key)
        except NotFoundError:
            return None
        self._pools.update_from_write(pool)
        return pool
