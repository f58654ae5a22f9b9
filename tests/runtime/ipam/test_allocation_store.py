"""Allocation from a pool whose CRD lacks ``status.allocation``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.ipam.address_ranges import AddressRanges
from capsmith_runtime.ipam.allocation_store import build_annotation
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.clock import VirtualLoop
from tests.runtime.ipam.allocator_environment import POOL, POOL_TYPE, AllocatorEnvironment, outcome

_NAME = build_annotation(POOL_TYPE.group)


def _run(scenario: Callable[[AllocatorEnvironment], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        env = AllocatorEnvironment()
        absent = ("status.allocation",)
        env.pools.resource = replace(POOL_TYPE, absent_fields=absent)
        await scenario(env)

    loop = VirtualLoop()
    try:
        loop.run_until_complete(run())
    finally:
        loop.close()


def _annotate(env: AllocatorEnvironment, text: str) -> None:
    body = {"metadata": {"annotations": {_NAME: text}}}
    env.server.patch(POOL_TYPE.kind, POOL.key, body)


def _stored(env: AllocatorEnvironment) -> JSON:
    pool = env.server.get(POOL_TYPE.kind, POOL.key)
    stored: JSON = json.loads(pool["metadata"]["annotations"][_NAME])
    return stored


def test_addresses_are_reserved_in_an_annotation() -> None:
    """An address that is allocated between a list and the takeover would be missed.

    Proves: IP-09, SM-09.
    """

    async def scenario(env: AllocatorEnvironment) -> None:
        claim = env.claim("a")
        task = asyncio.ensure_future(env.allocator.reserve(claim))
        assert await env.sent() == ["patch FooPool"]
        env.address("by-another", "10.0.0.1")
        env.answer_all()
        assert await env.sent() == ["list IPAddress"]
        env.answer_all()
        assert await env.sent() == ["patch FooPool"]
        env.answer_all()
        assert not task.done()
        assert await env.sent() == ["patch FooPool"]
        env.answer_all()
        assert outcome(await task) == "10.0.0.2"
        (entry,) = _stored(env)["reservations"]
        assert (entry["address"], entry["claimUID"]) == ("10.0.0.2", claim.uid)
        status = env.server.get(POOL_TYPE.kind, POOL.key)["status"]
        assert status == {"addresses": {"total": 2, "used": 2, "free": 0}}

    _run(scenario)


def test_a_write_of_another_manager_is_noticed() -> None:
    """Proves: IP-09, SM-09."""

    async def scenario(env: AllocatorEnvironment) -> None:
        await env.reserve(env.claim("a"))
        other = {"address": "10.0.0.2", "claimUID": "b", "claimName": "b"}
        entry = {**other, "claimNamespace": "default"}
        _annotate(env, json.dumps({"holder": "another", "reservations": [entry]}))
        env.server.create({**_claim("b"), "metadata": {"namespace": "default", "name": "b"}})
        task = asyncio.ensure_future(env.allocator.reserve(env.claim("c")))
        words = ["patch FooPool", "get FooPool", "patch FooPool", "list IPAddress"]
        for each in words:
            assert await env.sent() == [each]
            env.answer_all()
        for _ in range(100):
            await asyncio.sleep(0.001)
            env.answer_all()
        assert _stored(env)["holder"] == "me"
        assert outcome(await task) == "10.0.0.1"

    _run(scenario)


def _claim(name: str) -> JSON:
    return {"apiVersion": "v1", "kind": "IPAddressClaim", "spec": {}}


@pytest.mark.parametrize(
    "text", ["", "[" * 2000, "[1]", '{"holder":1,"reservations":[1,{}]}', '{"reservations":{}}']
)
def test_an_unreadable_annotation_is_replaced(text: str) -> None:
    async def scenario(env: AllocatorEnvironment) -> None:
        _annotate(env, text)
        env.pools.update_from_write(env.server.get(POOL_TYPE.kind, POOL.key))
        assert await env.reserve(env.claim("a")) == "10.0.0.1"
        stored = _stored(env)
        assert stored["holder"] == "me"
        assert [each["address"] for each in stored["reservations"]] == ["10.0.0.1"]

    _run(scenario)


def test_an_annotation_has_room_for_a_hundred_reservations() -> None:
    async def scenario(env: AllocatorEnvironment) -> None:
        env.usage.open(AddressRanges.of(["10.0.0.0/22"], 22))
        claims = [env.claim(f"claim-{number}") for number in range(120)]
        tasks = [asyncio.ensure_future(env.allocator.reserve(each)) for each in claims]
        for _ in range(20):
            await asyncio.sleep(0.001)
            env.answer_all()
        outcomes = [outcome(each.result()) for each in tasks]
        assert outcomes.count("PoolNotReady") == 20
        assert len(_stored(env)["reservations"]) == 100

    _run(scenario)


def test_nothing_is_written_twice_or_to_a_status_that_the_crd_lacks() -> None:
    async def scenario(env: AllocatorEnvironment) -> None:
        absent = ("status.addresses", "status.allocation", "status.conditions")
        env.pools.resource = replace(POOL_TYPE, absent_fields=absent)
        assert await env.reserve(env.claim("a")) == "10.0.0.1"
        assert "status" not in env.server.get(POOL_TYPE.kind, POOL.key)
        await env.allocator.sync_status()
        assert await env.sent() == []

    _run(scenario)
