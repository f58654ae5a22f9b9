"""Usage of one pool: its holders, its counts, its next free address, and the claims that wait."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from capsmith_runtime.contract.ipam import REASON_POOL_NOT_READY
from capsmith_runtime.ipam.address_ranges import Address, AddressRanges, number_of
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.reconcile.results import Waiting

Holder = Hashable
"""What holds an address: the key of an IPAddress, a listed address or a reservation."""

_MAX_COUNT: Final = 2**63 - 1
"""The largest number that fits into a status field (int64)."""
NOT_FOUND: Final = "does not exist, or is not watched here"


class AddressCounts(NamedTuple):
    """How many addresses a pool has.

    Addresses outside the ranges are not counted; without ranges only ``used`` is known.
    """

    total: int
    used: int
    free: int


class PoolUsage:
    """The addresses in use of one pool; see :func:`.address_ranges.number_of` for the numbers."""

    def __init__(self, name: str) -> None:
        self.name = name
        """Kind and name of the pool, for messages."""
        self.waiting_claims: dict[NamespacedName, None] = {}
        """Claims that could not be served, in order of arrival."""
        self.problem: Waiting | None = None
        """Why nothing can be allocated; None when the pool is open."""
        self._ranges: AddressRanges | None = None
        self._holders: dict[int, dict[Holder, None]] = {}
        self._size = 0
        self._used_in_ranges = 0
        # Every number below it is taken, so a search for a free address begins here.
        self._lowest = 0
        # The condition of each waiting claim is outdated then, even if no address is left for it.
        self._reopened = False
        self.close(NOT_FOUND)

    @property
    def ranges(self) -> AddressRanges | None:
        """The addresses to allocate; None when they are unknown, or another system decides."""
        return self._ranges

    def open(self, ranges: AddressRanges | None) -> None:
        """Allocate from these ranges from now on."""
        self._reopened = self._reopened or self.problem is not None
        self.problem = None
        if ranges != self._ranges:
            self._ranges = ranges
            self._lowest = 0
            self._size = ranges.size if ranges is not None else 0
            self._used_in_ranges = sum(1 for number in self._holders if self._in_ranges(number))

    def close(self, why: str) -> Waiting:
        """Allocate nothing; addresses in use stay in use.

        ``why`` continues the message after the name of the pool.
        """
        problem = Waiting(REASON_POOL_NOT_READY, f"{self.name} {why}", None)
        self.problem = problem
        return problem

    def add_holder(self, number: int, holder: Holder) -> None:
        """Record that an address is taken; it may have several holders."""
        holders = self._holders.get(number)
        if holders is None:
            holders = self._holders[number] = {}
            self._used_in_ranges += self._in_ranges(number)
        holders[holder] = None

    def remove_holder(self, number: int, holder: Holder) -> bool:
        """Remove a holder; return whether the address became free."""
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
        """Return the holders of an address."""
        return tuple(self._holders.get(number, ()))

    def first_free(self) -> int | None:
        """Return the next address to allocate; None when the pool is exhausted."""
        if self._ranges is None or self._size == self._used_in_ranges:
            return None
        number = self._ranges.first_free(self._holders, self._lowest)
        if number is not None:
            self._lowest = number
        return number

    def counts(self) -> AddressCounts:
        """Return the counts, limited to what a status field can hold."""
        if self._ranges is None:
            return AddressCounts(0, len(self._holders), 0)
        counts = (self._size, self._used_in_ranges, self._size - self._used_in_ranges)
        return AddressCounts(*(min(number, _MAX_COUNT) for number in counts))

    @property
    def in_use(self) -> bool:
        """Whether any address has a holder, inside or outside the ranges."""
        return bool(self._holders)

    @property
    def is_unused(self) -> bool:
        """Whether the pool is closed, and nothing holds or waits for one of its addresses."""
        return self.problem is not None and not self._holders and not self.waiting_claims

    def pop_waiting_claims(self) -> list[NamespacedName]:
        """Remove and return the claims to reconcile now: as many as there are free addresses.

        After the pool has been reopened, these are all claims, because the reason they show is no
        longer true.  A claim that still gets nothing is added again.
        """
        if self.problem is not None:
            return []
        limited = self._ranges is not None and not self._reopened
        limit = self.counts().free if limited else len(self.waiting_claims)
        claims = list(self.waiting_claims)[:limit]
        self._reopened = False
        for key in claims:
            del self.waiting_claims[key]
        return claims

    def __contains__(self, address: object) -> bool:
        """Whether an address is taken."""
        return isinstance(address, Address) and number_of(address) in self._holders

    def _in_ranges(self, number: int) -> bool:
        return self._ranges is not None and number in self._ranges
