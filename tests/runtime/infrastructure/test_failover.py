"""A manager that takes over: its caches may lag behind what the former leader has done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from capsmith_runtime.infrastructure import Deleted
from capsmith_runtime.kube.client import ResourceType, Selection, WatchEvent
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.manager import Manager, lease_name
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import keep_process
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure.scripted_provider import PROVIDER as PROVIDER
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachines,
    ScriptFactory,
)
from tests.runtime.support.following import sample

LAG_SECONDS = 120.0


class TestFailover(ScriptedMachines):
    @scenario
    async def test_the_next_leader_creates_nothing_for_a_deleted_machine(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        cluster = await env.running_cluster()
        await env.stop()
        creation, deletion = normal(OSError("not yet")), delete(Deleted())
        metrics = Metrics()
        lagging = LaggingApi(env.api)
        first, second = _manager(env, env.api, Metrics()), _manager(env, lagging, metrics)
        key = env.core.add_machine(cluster)
        async with asyncio.TaskGroup() as group:
            stop_first, stop_second = asyncio.Event(), asyncio.Event()
            leading = group.create_task(first.run(stop_first))
            await env.eventually("the first leads", lambda: creation.calls)
            group.create_task(second.run(stop_second))
            await env.eventually("the second has read it", lambda: lagging.watches)
            lagging.lag = LAG_SECONDS
            env.api.remove(env.machine_kind.resource.kind, key)
            await env.eventually("it is deleted", lambda: env.is_gone(env.machine_kind, key))
            assert len(deletion.calls) == 1
            stop_first.set()
            await leading

            creation = normal(PROVISIONED)
            await env.eventually("the second leads", lambda: sample(metrics, "leader") == 1)
            await env.quiet()
            assert creation.calls == [], "a machine that no longer exists was created"
            stop_second.set()

    @scenario
    async def test_each_shard_of_a_namespace_has_a_leader(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(PROVISIONED)
        await env.stop()
        metrics = {shard: Metrics() for shard in ("north", "south")}
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for shard, each in metrics.items():
                group.create_task(_manager(env, env.api, each, watch_filter=shard).run(stop))
            for shard, each in metrics.items():
                await env.eventually(f"{shard} leads", partial(sample, each, "leader"))
            for shard in metrics:
                key = env.core.add_cluster(shard)
                labels = {"cluster.x-k8s.io/watch-filter": shard}
                env.api.change(
                    env.cluster_kind.resource.kind, key, {"metadata": {"labels": labels}}
                )
                await env.eventually(f"{shard} works", partial(env.has_cluster, key))
            stop.set()

    @pytest.mark.parametrize(
        ("watch_filter", "namespaces", "suffix"),
        [
            ("", [], ""),
            ("a", [], "-87428fc5"),
            ("", ["a"], "-7361a6f4"),
            ("", ["a", "b"], "-975305d2"),
            ("", ["b", "a"], "-975305d2"),
        ],
    )
    def test_a_manager_without_limits_keeps_the_name_of_its_lease(
        self, watch_filter: str, namespaces: list[str], suffix: str
    ) -> None:
        name = lease_name("infrastructure-acme", watch_filter, namespaces)
        assert name == f"infrastructure-acme-leader-election{suffix}"

    def test_managers_that_exclude_a_namespace_have_another_lease(self) -> None:
        """One manager may watch a namespace that all others exclude."""
        names = [
            lease_name("acme", "", *namespaces)
            for namespaces in [([], []), (["a"], []), ([], ["a"]), ([], ["a", "b"])]
        ]
        assert len(set(names)) == len(names)
        assert lease_name("acme", "", [], ["b", "a"]) == names[-1]


class LaggingApi:
    """The same API server; its watches of machines report changes late."""

    def __init__(self, api: FakeApi) -> None:
        self.lag = 0.0
        self.watches = 0
        self._api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield events, those of machines with a delay."""
        events = self._api.watch(resource, selection, resource_version=resource_version)
        self.watches += resource.kind == "AcmeMachine"
        async for event in events:
            if resource.kind == "AcmeMachine":
                await asyncio.sleep(self.lag)
            yield event


def _manager(
    env: InfrastructureEnvironment, client: Any, metrics: Metrics, watch_filter: str = ""
) -> Manager:
    options = replace(
        env.options(),
        leader_elect=True,
        lease_namespace="acme-system",
        watch_filter=watch_filter,
    )
    return Manager(env.component, options, client, metrics, keep_process)
