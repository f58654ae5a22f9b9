"""Reconcilers of IPAM providers, with their arguments and results.

A pool allocates from its own ranges, which needs no code, or from an external IPAM system. All
methods may be ``def`` or ``async def``. They are called repeatedly, even if nothing has changed,
and again after a crash at any point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Container, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Generic, TypeVar

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.ipam import REASON_POOL_EXHAUSTED
from capsmith_runtime.ipam.address_ranges import Address, AddressRanges, InvalidRangesError
from capsmith_runtime.reconcile.results import Deleted, NotAvailableError, State, Waiting
from capsmith_runtime.reconcile.scopes import OptionalCredentialsScope
from capsmith_runtime.reconcile.sessions import Credentials, SessionUser

Spec = TypeVar("Spec")


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Pool(OptionalCredentialsScope, Generic[Spec]):
    """A pool of addresses; its namespace is empty if it is cluster-scoped."""

    spec: Spec
    """The pool's spec with the author's fields; for fields common to all pools, see ``ranges``."""
    raw_spec: Mapping[str, Any] = field(repr=False)
    """The whole spec as JSON."""
    _credentials: Credentials | Waiting = field(default_factory=Credentials, repr=False)

    def ranges(self) -> AddressRanges:
        """Return the ranges that the fields common to all pools describe, such as ``addresses``.

        Raises NotAvailableError if the fields contradict each other. If you do not catch it, the
        pool's Ready condition reports the contradiction.
        """
        spec = self.raw_spec
        prefix = metadata.lookup(spec, "prefix")
        try:
            return AddressRanges.of(
                metadata.items(spec, "addresses"),
                prefix if isinstance(prefix, int) else -1,
                gateway=metadata.text(spec, "gateway") or None,
                excluded=metadata.items(spec, "excludedAddresses"),
                with_reserved=metadata.lookup(spec, "allocateReserved") is True,
            )
        except InvalidRangesError as error:
            waiting = Waiting(constants.REASON_INVALID_SPEC, str(error), None)
            raise NotAvailableError(waiting) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState(State):
    """The state of a pool; no address is allocated while ``ready`` is false."""

    ranges: AddressRanges | None = None
    """The addresses to allocate, or None if another system chooses them."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """An IP address for a claim, with its prefix length and gateway (IP-06)."""

    address: Address
    """The allocated address."""
    prefix: int
    """Prefix length of the address's network: up to 32 for IPv4 and 128 for IPv6."""
    gateway: Address | None = None
    """Gateway of the network, or None if there is none."""

    def __post_init__(self) -> None:
        longest = 32 if self.address.version == 4 else 128
        if not 0 <= self.prefix <= longest:
            raise ValueError(f"Allocation.prefix must be between 0 and {longest}")

    @classmethod
    def of(cls, address: str, prefix: int, gateway: str | None = None) -> Allocation:
        """Create an allocation from strings.

        Raises ValueError for an invalid address.
        """
        return cls(ip_address(address), prefix, ip_address(gateway) if gateway else None)


def exhausted(message: str = "no address is left", requeue_after: float = 30.0) -> Waiting:
    """Return the Waiting result to use when an IPAM system has no free address.

    ``requeue_after`` is in seconds.
    """
    return Waiting(REASON_POOL_EXHAUSTED, message, requeue_after)


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class AddressClaim(OptionalCredentialsScope, Generic[Spec]):
    """A claim that needs an address: the argument of ``allocate``."""

    pool: Pool[Spec]
    """The pool that the claim refers to."""
    cluster: Cluster | None
    """The Cluster that the claim belongs to, or None if it belongs to none."""
    taken: Container[Address] = field(repr=False)
    """The pool's addresses that Cluster API knows to be in use."""
    _credentials: Credentials | Waiting = field(default_factory=Credentials, repr=False)


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class AddressRelease(OptionalCredentialsScope):
    """A claim that is being deleted or is already gone: the argument of ``release``.

    The pool and the Cluster may be gone as well.
    """

    pool_name: str
    """Name of the pool that the claim refers to."""
    raw_pool_spec: Mapping[str, Any] | None = field(repr=False)
    """The pool's whole spec as JSON, or None if the pool is gone."""
    address: Address | None
    """The claim's address, or None if no IPAddress exists.

    An address may be allocated even if there is no IPAddress, so look it up by external id.
    """
    _credentials: Credentials | Waiting = field(default_factory=Credentials, repr=False)


class PoolReconciler(SessionUser, ABC, Generic[Spec]):
    """Base class for reconcilers of IP pools, with ranges or with an external system."""

    @abstractmethod
    def reconcile_normal(
        self, pool: Pool[Spec]
    ) -> PoolState | Waiting | Awaitable[PoolState | Waiting]:
        """Return the pool's state, including whether addresses can be allocated from it."""

    def reconcile_delete(
        self, pool: Pool[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Clean up after a pool that is being deleted; all of its addresses have been released."""
        return Deleted()


class RangePoolReconciler(PoolReconciler[Spec]):
    """Allocates addresses from the pool's own ranges, starting with the lowest free one."""

    def reconcile_normal(
        self, pool: Pool[Spec]
    ) -> PoolState | Waiting | Awaitable[PoolState | Waiting]:
        """Return the ranges in the spec; override this to get them from elsewhere."""
        return PoolState(ranges=pool.ranges())


class ExternalPoolReconciler(PoolReconciler[Spec]):
    """Base class for reconcilers that allocate a pool's addresses in another system."""

    def reconcile_normal(
        self, pool: Pool[Spec]
    ) -> PoolState | Waiting | Awaitable[PoolState | Waiting]:
        """Return the pool as ready; override this to check the other system."""
        return PoolState()

    @abstractmethod
    def allocate(
        self, claim: AddressClaim[Spec]
    ) -> Allocation | Waiting | Awaitable[Allocation | Waiting]:
        """Allocate an address for a claim, always the same one for the same ``external_id``."""

    @abstractmethod
    def release(self, claim: AddressRelease) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Release a claim's address, if it has one; return Deleted in either case."""
