"""Calls of a pool's reconciler while addresses of the pool are allocated and released."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import pairwise

import pytest

from capsmith_runtime.ipam import Pool, PoolReconciler, PoolState
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.kube.client import ResourceType, Selection, WatchEvent
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.ipam.base import RangedIPAMConformance
from capsmith_runtime.testing.fake_api import TRAVEL_SECONDS
from capsmith_runtime.testing.ipam.environment import IPAMEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")
REQUEUE_SECONDS = 60.0


class Calls:
    """The calls of ``reconcile_normal``, each of which waits until ``may_return`` is set."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.may_return = asyncio.Event()
        self.may_return.set()

    async def answer(self, pool: Pool[object]) -> PoolState:
        self.times.append(asyncio.get_running_loop().time())
        await self.may_return.wait()
        return PoolState(ranges=pool.ranges(), requeue_after=REQUEUE_SECONDS)


@run_with("complete")
class TestCallsForPools(RangedIPAMConformance):
    """Changed counts alone need no call, but they replace no call that is due."""

    @pytest.fixture
    def calls(self, case: KindCase[PoolKind], monkeypatch: pytest.MonkeyPatch) -> Calls:
        calls = Calls()

        async def reconcile_normal(self: PoolReconciler[object], pool: Pool[object]) -> PoolState:
            return await calls.answer(pool)

        monkeypatch.setattr(case.kind.reconciler, "reconcile_normal", reconcile_normal)
        return calls

    @pytest.fixture(autouse=True)
    def _late_events(self, env: IPAMEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the response to a write of a pool arrive before its event, as usual."""
        kind, watch = env.kind.resource.kind, env.api.watch

        async def watch_late(
            resource: ResourceType, selection: Selection, *, resource_version: str
        ) -> AsyncGenerator[WatchEvent, None]:
            events = watch(resource, selection, resource_version=resource_version)
            async with aclosing(events) as stream:
                async for event in stream:
                    if resource.kind == kind:
                        await asyncio.sleep(2 * TRAVEL_SECONDS)
                    yield event

        monkeypatch.setattr(env.api, "watch", watch_late)

    @scenario
    async def test_changed_counts_do_not_postpone_the_next_call(
        self, env: IPAMEnvironment, calls: Calls
    ) -> None:
        pool = env.add_pool()
        for number in range(5):
            await env.gets(env.add_claim(pool, f"a{number}"))
            await env.quiet()
            await asyncio.sleep(REQUEUE_SECONDS / 2)
        delays = [later - sooner for sooner, later in pairwise(calls.times)]
        assert len(delays) >= 2
        assert max(delays) < REQUEUE_SECONDS + 5

    @scenario
    async def test_changed_counts_do_not_replace_a_call_after_a_change(
        self, env: IPAMEnvironment, calls: Calls
    ) -> None:
        """The pool changes, and then one of its addresses, while a call is running."""
        pool = env.add_pool()
        await env.gets(env.add_claim(pool))
        await env.quiet()
        kind, count = env.kind.resource.kind, len(calls.times)
        calls.may_return.clear()
        env.api.change(kind, pool, {"metadata": {"labels": {"color": "green"}}})
        await env.eventually("called", lambda: len(calls.times) > count)
        env.api.change(kind, pool, {"metadata": {"labels": {"color": "blue"}}})
        await asyncio.sleep(1)
        env.add_address(pool, "by-hand", "10.0.0.6")
        await asyncio.sleep(1)
        calls.may_return.set()
        await env.eventually("called again", lambda: len(calls.times) > count + 1)
        assert calls.times[-1] - calls.times[-2] < 5
