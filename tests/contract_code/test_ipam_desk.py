"""How the addresses of one pool are handed out: which requests are sent, in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from capsmith_generated.address_ranges import AddressRanges, address_of
from capsmith_generated.controllers.ipam.desk import Request
from capsmith_generated.runtime.cache import Change
from capsmith_generated.runtime.client import JSON, Key

from tests.contract_code.ipam_scene import CLAIM_TYPE, POOL, REFERENCE, Scene, object_of
from tests.contract_code.scheduled_api import VirtualLoop


def test_the_census_comes_after_the_takeover() -> None:
    """What others give between a census and the takeover would be in neither.

    Proves: IP-09, SM-09.
    """

    async def story(scene: Scene) -> None:
        task = asyncio.ensure_future(scene.desk.reserve(scene.claim("a")))
        assert await scene.sent() == ["patch FooPool"]
        scene.address("by-somebody", "10.0.0.1")
        scene.answer_all()
        assert await scene.sent() == ["list IPAddress"]
        scene.answer_all()
        assert await scene.sent() == ["patch FooPool"]
        scene.answer_all()
        assert str(address_of(await task)) == "10.0.0.2"

    _play(story)


def test_whoever_holds_a_pool_writes_once_for_each_batch() -> None:
    async def story(scene: Scene) -> None:
        await scene.reserve(scene.claim("a"))
        task = asyncio.ensure_future(scene.desk.reserve(scene.claim("b")))
        assert await scene.sent() == ["patch FooPool"]
        scene.answer_all()
        assert str(address_of(await task)) == "10.0.0.2"

    _play(story)


def test_a_census_that_failed_is_taken_again() -> None:
    """Proves: IP-09, SM-09."""

    async def story(scene: Scene) -> None:
        await scene.reserve(scene.claim("a"))
        scene.somebody_else_takes_over()
        scene.address("by-somebody", "10.0.0.2")
        task = asyncio.ensure_future(scene.desk.reserve(scene.claim("b")))
        for words in ("patch FooPool", "get FooPool", "patch FooPool"):
            assert await scene.sent() == [words]
            scene.answer_all()
        assert await scene.sent() == ["list IPAddress"]
        scene.server.requests.pop().get_lost()
        with pytest.raises(Exception, match="Lost"):
            await task
        assert await scene.reserve(scene.claim("b2")) == "PoolExhausted"

    _play(story)


def test_a_census_answers_only_who_asked_before_it_began() -> None:
    """Proves: IP-09, SM-09."""

    async def story(scene: Scene) -> None:
        first = asyncio.ensure_future(scene.census.take())
        await scene.sent()
        (listing,) = scene.server.requests
        listing.arrive()
        scene.address("by-somebody", "10.0.0.1")
        second, third = (asyncio.ensure_future(scene.census.take()) for _ in range(2))
        await asyncio.sleep(0.001)
        scene.server.requests.remove(listing)
        listing.get_through()
        assert await scene.sent() == ["list IPAddress"]
        assert (first.done(), second.done(), third.done()) == (True, False, False)
        scene.answer_all()
        assert await scene.sent() == []
        assert (second.done(), third.done()) == (True, True)
        assert "10.0.0.1" in _taken(scene)

    _play(story)


def test_the_census_counts_until_the_cache_knows_as_much() -> None:
    async def story(scene: Scene) -> None:
        made = scene.address("by-somebody", "10.0.0.1")
        await asyncio.gather(scene.census.take(), _soon(scene.answer_all))
        scene.addresses.seen = scene.server.version - 1
        assert scene.book.catch_up() == ()
        assert "10.0.0.1" in _taken(scene)
        scene.addresses.seen += 1
        assert scene.book.catch_up() == (POOL,)
        assert _taken(scene) == []
        assert scene.book.observe(Change(None, made)).touched == (POOL,)
        assert _taken(scene) == ["10.0.0.1"]

    _play(story)


def test_a_reservation_of_somebody_else_counts() -> None:
    """Its IPAddress may be on its way; when its claim is gone nobody is there to have it.

    Proves: IP-09, IP-10.
    """

    async def story(scene: Scene) -> None:
        theirs = scene.claim("theirs")
        scene.server.patch("FooPool", POOL.key, _reserved("10.0.0.1", theirs))
        mine = scene.claim("mine")
        assert await scene.reserve(mine) == "10.0.0.2"
        assert await scene.reserve(theirs) == "10.0.0.1"
        late = scene.claim("late")
        assert await scene.reserve(late) == "PoolExhausted"
        scene.server.delete("IPAddressClaim", theirs.claim)
        scene.claims.remember(object_of(CLAIM_TYPE, "theirs", {}))
        assert await scene.reserve(late) == "10.0.0.1"

    _play(story)


def test_a_reservation_of_a_claim_that_the_cache_has_not_seen_counts() -> None:
    """Proves: IP-09, SM-09."""

    async def story(scene: Scene) -> None:
        theirs = scene.server.create(object_of(CLAIM_TYPE, "theirs", {"poolRef": REFERENCE}))
        request = Request(Key("default", "theirs"), theirs["metadata"]["uid"])
        scene.server.patch("FooPool", POOL.key, _reserved("10.0.0.1", request))
        assert await scene.reserve(scene.claim("mine")) == "10.0.0.2"

    _play(story)


def test_a_reservation_outlives_an_earlier_address_of_its_name() -> None:
    """Proves: IP-09."""

    async def story(scene: Scene) -> None:
        request = scene.claim("again")
        earlier = scene.address("again", "10.7.7.7", finalizers=["example.com/held"])
        earlier["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        scene.addresses.remember(earlier)
        assert await scene.reserve(request) == "10.0.0.1"
        assert await scene.reserve(scene.claim("other")) == "10.0.0.2"
        del earlier["metadata"]["deletionTimestamp"]
        assert await scene.reserve(scene.claim("third")) == "10.0.0.1"

    _play(story)


def test_a_lost_answer_costs_nothing() -> None:
    """The write was done, and its manager never heard of it.

    Proves: SM-09.
    """

    async def story(scene: Scene) -> None:
        request = scene.claim("a")
        await scene.reserve(scene.claim("first"))
        task = asyncio.ensure_future(scene.desk.reserve(request))
        await scene.sent()
        (patch,) = scene.server.requests
        patch.arrive()
        scene.server.requests.clear()
        patch.get_lost()
        with pytest.raises(Exception, match="Lost"):
            await task
        assert await scene.reserve(request) == "10.0.0.2"
        assert await scene.reserve(scene.claim("b")) == "PoolExhausted"

    _play(story)


def test_a_pool_that_goes_gives_nothing() -> None:
    async def story(scene: Scene) -> None:
        scene.server.patch("FooPool", POOL.key, {"metadata": {"finalizers": ["example.com/x"]}})
        scene.server.delete("FooPool", POOL.key)
        request = scene.claim("a")
        assert await scene.reserve(request) == "PoolNotReady"
        assert list(scene.ledger.waiting) == [request.claim]
        scene.server.patch("FooPool", POOL.key, {"metadata": {"finalizers": None}})
        scene.ledger.open(scene.ledger.ranges)
        assert await scene.reserve(request) == "PoolNotReady"

    _play(story)


def _play(story: Any) -> None:
    async def perform() -> None:
        await story(Scene())

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        coroutine: Coroutine[Any, Any, None] = perform()
        runner.run(coroutine)


async def _soon(act: Any) -> None:
    await asyncio.sleep(0.001)
    act()


def _taken(scene: Scene) -> list[str]:
    texts = [f"10.0.0.{n}" for n in (1, 2)]
    numbers = {text: AddressRanges.of([text], 24).spans[0][0] for text in texts}
    return [text for text, number in numbers.items() if scene.ledger.holders(number)]


def _reserved(address: str, request: Request) -> JSON:
    entry = {
        "address": address,
        "claimUID": request.uid,
        "claimName": request.claim.name,
        "claimNamespace": request.claim.namespace,
    }
    return {"status": {"allocation": {"holder": "somebody else", "reservations": [entry]}}}
