"""Which waiting claims of a pool are requeued, and when."""

from __future__ import annotations

import asyncio
import gc
import weakref

from capsmith_runtime.ipam.address_index import PoolUsage
from capsmith_runtime.ipam.address_ranges import AddressRanges
from capsmith_runtime.kube.client import NamespacedName
from tests.runtime.ipam.allocator_environment import POOL, AllocatorEnvironment

TWO = AddressRanges.of(["10.0.0.1-10.0.0.2"], 24)
CLAIMS = [NamespacedName("default", name) for name in "abc"]


def _usage_with_waiting_claims() -> PoolUsage:
    usage = PoolUsage("FooPool pool")
    for claim in CLAIMS:
        usage.waiting_claims[claim] = None
    return usage


def test_all_claims_are_requeued_when_a_pool_appears() -> None:
    """Also claims for which no address is left: the reason that they show is outdated.

    Proves: IP-05.
    """
    usage = _usage_with_waiting_claims()
    assert usage.pop_waiting_claims() == []
    usage.open(TWO)
    assert usage.pop_waiting_claims() == CLAIMS
    assert not usage.waiting_claims


def test_as_many_claims_are_requeued_as_there_are_addresses() -> None:
    usage = PoolUsage("FooPool pool")
    usage.open(TWO)
    assert usage.pop_waiting_claims() == []
    usage.waiting_claims |= dict.fromkeys(CLAIMS)
    usage.open(TWO)
    assert usage.pop_waiting_claims() == CLAIMS[:2]
    assert list(usage.waiting_claims) == CLAIMS[2:]


def test_no_claim_is_requeued_for_a_pool_that_was_closed_again() -> None:
    usage = _usage_with_waiting_claims()
    usage.open(TWO)
    usage.close("is not ready")
    assert usage.pop_waiting_claims() == []
    usage.open(TWO)
    assert usage.pop_waiting_claims() == CLAIMS


def test_the_usage_of_a_pool_that_is_gone_is_dropped() -> None:
    env = AllocatorEnvironment()
    usage = weakref.ref(env.usage)
    env.usage.close("does not exist")
    env.index.release_unused(POOL)
    del env.usage, env.allocator
    gc.collect()
    assert usage() is None


def test_a_usage_that_something_needs_is_kept() -> None:
    """An open pool, an address in use, a claim that waits, an allocator that still works."""
    env = AllocatorEnvironment()
    usage = env.usage
    env.index.release_unused(POOL)
    usage.add_holder(1, CLAIMS[0])
    usage.close("does not exist")
    env.index.release_unused(POOL)
    usage.remove_holder(1, CLAIMS[0])
    usage.waiting_claims[CLAIMS[0]] = None
    env.index.release_unused(POOL)
    del usage.waiting_claims[CLAIMS[0]]
    assert env.index.usage(POOL) is usage

    env.index.release_unused(POOL)

    async def wait() -> None:
        await env.allocator.reserve(env.claim("a"))

    asyncio.run(wait())
    assert env.index.usage(POOL) is usage
    assert list(usage.waiting_claims) == [NamespacedName("default", "a")]
