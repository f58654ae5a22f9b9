"""Allocation from one pool: which requests are sent, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.ipam.address_ranges import AddressRanges
from capsmith_runtime.ipam.allocator import MAX_LOOKUPS, AddressRequest
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.testing.clock import VirtualLoop
from tests.runtime.ipam.allocator_environment import (
    CLAIM_TYPE,
    POOL,
    POOL_TYPE,
    REFERENCE,
    AllocatorEnvironment,
    object_of,
    outcome,
)


def test_addresses_are_listed_after_the_takeover() -> None:
    """An address that is allocated between a list and the takeover would be missed.

    Proves: IP-09, SM-09.
    """

    async def scenario(env: AllocatorEnvironment) -> None:
        task = asyncio.ensure_future(env.allocator.reserve(env.claim("a")))
        assert await env.sent() == ["patch FooPool"]
        env.address("by-another", "10.0.0.1")
        env.answer_all()
        assert await env.sent() == ["list IPAddress"]
        env.answer_all()
        assert await env.sent() == ["patch FooPool"]
        env.answer_all()
        assert outcome(await task) == "10.0.0.2"

    _run(scenario)


def test_the_holder_of_a_pool_writes_once_for_each_batch() -> None:
    async def scenario(env: AllocatorEnvironment) -> None:
        await env.reserve(env.claim("a"))
        task = asyncio.ensure_future(env.allocator.reserve(env.claim("b")))
        assert await env.sent() == ["patch FooPool"]
        env.answer_all()
        assert outcome(await task) == "10.0.0.2"

    _run(scenario)


def test_a_claim_with_an_address_no_longer_waits_for_one() -> None:
    """Its place in the line would cost the next claim its turn."""

    async def scenario(env: AllocatorEnvironment) -> None:
        for name in "ab":
            await env.reserve(env.claim(name))
        waiting = env.claim("c")
        assert await env.reserve(waiting) == "PoolExhausted"
        assert list(env.usage.waiting_claims) == [waiting.claim]
        env.usage.open(AddressRanges.of(["10.0.0.1-10.0.0.3"], 24))
        assert await env.reserve(waiting) == "10.0.0.3"
        assert not env.usage.waiting_claims

    _run(scenario)


def test_counts_that_the_crd_lacks_are_not_written_again() -> None:
    async def scenario(env: AllocatorEnvironment) -> None:
        env.pools.resource = replace(POOL_TYPE, absent_fields=("status.addresses",))
        await env.allocator.sync_status()
        assert await env.sent() == []
        await env.reserve(env.claim("a"))
        pool = env.pools.get(POOL.key)
        assert pool is not None
        assert list(pool["status"]) == ["allocation"]
        await env.allocator.sync_status()
        assert await env.sent() == []

    _run(scenario)


def test_a_failed_list_is_repeated() -> None:
    """Proves: IP-09, SM-09."""

    async def scenario(env: AllocatorEnvironment) -> None:
        await env.reserve(env.claim("a"))
        env.let_another_manager_take_over()
        env.address("by-another", "10.0.0.2")
        task = asyncio.ensure_future(env.allocator.reserve(env.claim("b")))
        for words in ("patch FooPool", "get FooPool", "patch FooPool"):
            assert await env.sent() == [words]
            env.answer_all()
        assert await env.sent() == ["list IPAddress"]
        env.server.requests.pop().get_lost()
        with pytest.raises(Exception, match="Lost"):
            await task
        assert await env.reserve(env.claim("b2")) == "PoolExhausted"

    _run(scenario)


def test_a_list_serves_only_callers_from_before_its_start() -> None:
    """Proves: IP-09, SM-09."""

    async def scenario(env: AllocatorEnvironment) -> None:
        first = asyncio.ensure_future(env.live_list.refresh())
        await env.sent()
        (listing,) = env.server.requests
        listing.arrive()
        env.address("by-another", "10.0.0.1")
        second, third = (asyncio.ensure_future(env.live_list.refresh()) for _ in range(2))
        await asyncio.sleep(0.001)
        env.server.requests.remove(listing)
        listing.get_through()
        assert await env.sent() == ["list IPAddress"]
        assert (first.done(), second.done(), third.done()) == (True, False, False)
        env.answer_all()
        assert await env.sent() == []
        assert (second.done(), third.done()) == (True, True)
        assert "10.0.0.1" in _taken(env)

    _run(scenario)


def test_the_live_list_counts_until_the_cache_is_as_new() -> None:
    async def scenario(env: AllocatorEnvironment) -> None:
        created = env.address("by-another", "10.0.0.1")
        await asyncio.gather(env.live_list.refresh(), _soon(env.answer_all))
        env.addresses.seen = env.server.version - 1
        assert env.index.drop_outdated_live_list() == ()
        assert "10.0.0.1" in _taken(env)
        env.addresses.seen += 1
        assert env.index.drop_outdated_live_list() == (POOL,)
        assert _taken(env) == []
        assert env.index.update(Delta(None, created)).changed_pools == (POOL,)
        assert _taken(env) == ["10.0.0.1"]

    _run(scenario)


def test_a_reservation_of_another_manager_counts() -> None:
    """Its IPAddress may be about to be created; it ends with the claim.

    Proves: IP-09, IP-10.
    """

    async def scenario(env: AllocatorEnvironment) -> None:
        theirs = env.claim("theirs")
        env.server.patch("FooPool", POOL.key, _reserved("10.0.0.1", theirs))
        mine = env.claim("mine")
        assert await env.reserve(mine) == "10.0.0.2"
        assert await env.reserve(theirs) == "10.0.0.1"
        late = env.claim("late")
        assert await env.reserve(late) == "PoolExhausted"
        env.server.delete("IPAddressClaim", theirs.claim)
        env.claims.update_from_write(object_of(CLAIM_TYPE, "theirs", {}))
        assert await env.reserve(late) == "10.0.0.1"

    _run(scenario)


def test_a_reservation_of_a_claim_that_is_not_in_the_cache_counts() -> None:
    """Proves: IP-09, SM-09."""

    async def scenario(env: AllocatorEnvironment) -> None:
        theirs = env.server.create(object_of(CLAIM_TYPE, "theirs", {"poolRef": REFERENCE}))
        request = AddressRequest(NamespacedName("default", "theirs"), theirs["metadata"]["uid"])
        env.server.patch("FooPool", POOL.key, _reserved("10.0.0.1", request))
        assert await env.reserve(env.claim("mine")) == "10.0.0.2"

    _run(scenario)


def test_a_reservation_outlives_an_earlier_address_of_its_name() -> None:
    """Proves: IP-09."""

    async def scenario(env: AllocatorEnvironment) -> None:
        request = env.claim("again")
        earlier = env.address("again", "10.7.7.7", finalizers=["example.com/held"])
        earlier["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        env.addresses.update_from_write(earlier)
        assert await env.reserve(request) == "10.0.0.1"
        assert await env.reserve(env.claim("other")) == "10.0.0.2"
        del earlier["metadata"]["deletionTimestamp"]
        assert await env.reserve(env.claim("third")) == "10.0.0.1"

    _run(scenario)


def test_a_lost_answer_costs_nothing() -> None:
    """The write succeeded, but its manager never got the answer.

    Proves: SM-09.
    """

    async def scenario(env: AllocatorEnvironment) -> None:
        request = env.claim("a")
        await env.reserve(env.claim("first"))
        task = asyncio.ensure_future(env.allocator.reserve(request))
        await env.sent()
        (patch,) = env.server.requests
        patch.arrive()
        env.server.requests.clear()
        patch.get_lost()
        with pytest.raises(Exception, match="Lost"):
            await task
        assert await env.reserve(request) == "10.0.0.2"
        assert await env.reserve(env.claim("b")) == "PoolExhausted"

    _run(scenario)


def test_a_pool_in_deletion_allocates_nothing() -> None:
    async def scenario(env: AllocatorEnvironment) -> None:
        env.server.patch("FooPool", POOL.key, {"metadata": {"finalizers": ["example.com/x"]}})
        env.server.delete("FooPool", POOL.key)
        request = env.claim("a")
        assert await env.reserve(request) == "PoolNotReady"
        assert list(env.usage.waiting_claims) == [request.claim]
        env.server.patch("FooPool", POOL.key, {"metadata": {"finalizers": None}})
        env.usage.open(env.usage.ranges)
        assert await env.reserve(request) == "PoolNotReady"

    _run(scenario)


def _run(scenario: Any) -> None:
    async def run() -> None:
        await scenario(AllocatorEnvironment())

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        coroutine: Coroutine[Any, Any, None] = run()
        runner.run(coroutine)


async def _soon(callback: Any) -> None:
    await asyncio.sleep(0.001)
    callback()


def _taken(env: AllocatorEnvironment) -> list[str]:
    texts = [f"10.0.0.{n}" for n in (1, 2)]
    numbers = {text: AddressRanges.of([text], 24).spans[0][0] for text in texts}
    return [text for text, number in numbers.items() if env.usage.holders(number)]


def test_few_claims_of_reservations_are_looked_up_at_a_time() -> None:
    """Users can write the status of a pool: a worker would wait for a thousand requests."""

    async def scenario(env: AllocatorEnvironment) -> None:
        await _look_up(env)

    _run(scenario)


async def _look_up(env: AllocatorEnvironment) -> None:
    looked_up: list[str] = []
    get = env.client.get

    async def count(resource: ResourceType, key: NamespacedName) -> JSON:
        if resource is CLAIM_TYPE:
            looked_up.append(key.name)
        return await get(resource, key)

    env.client.get = count  # type: ignore[method-assign]
    gone = [AddressRequest(NamespacedName("default", f"g{n}"), f"g{n}") for n in range(60)]
    foreign = [AddressRequest(NamespacedName("other", f"o{n}"), f"o{n}") for n in range(60)]
    states = [_reserved("10.1.0.1", request) for request in (*gone, *foreign)]
    first, *others = [each["status"]["allocation"] for each in states]
    first["reservations"] += [entry for each in others for entry in each["reservations"]]
    env.server.patch("FooPool", POOL.key, states[0])

    assert await env.reserve(env.claim("a")) == "10.0.0.1"
    assert (len(looked_up), env.allocator.is_loaded) == (MAX_LOOKUPS, False)
    assert await env.reserve(env.claim("b")) == "10.0.0.2"
    assert (len(looked_up), env.allocator.is_loaded) == (60, True)
    pool = env.pools.get(POOL.key) or {}
    left = pool["status"]["allocation"]["reservations"]
    assert {entry["claimName"] for entry in left} == {"a", "b"}


def _reserved(address: str, request: AddressRequest) -> JSON:
    entry = {
        "address": address,
        "claimUID": request.uid,
        "claimName": request.claim.name,
        "claimNamespace": request.claim.namespace,
    }
    return {"status": {"allocation": {"holder": "another manager", "reservations": [entry]}}}
