"""The life of a pool with Machines: how its machines are created and removed."""

from __future__ import annotations

import asyncio

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import (
    PoolMachinesConformance,
)
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.machine_pool.environment import (
    PoolMachinesEnvironment,
)


class TestPoolMachines(PoolMachinesConformance):
    """The life of a pool with Machines: how its machines are created and removed."""

    @scenario
    async def test_a_pool_grows_and_shrinks(self, env: PoolMachinesEnvironment) -> None:
        """The number of machines follows ``replicas``; Machines are deleted, which drains Nodes.

        Proves: MP-01, MP-03, MP-04, MP-07, MP-10, MP-11.
        """
        env.add_pool(0)
        await env.settled(0)
        for count in (5, 2, 3):
            env.scale(count)
            await env.settled(count)
            assert env.ids() == sorted(set(env.ids()))
            assert len(env.api.all("Machine")) == count
        assert len(env.created()) == len(set(env.created())) == 6
        # Only Machines were deleted: deleting their infrastructure directly drains nothing (MP-10).
        deleted = {kind for verb, kind, _ in env.api.requests if verb == "delete"}
        assert deleted == {"Machine"}
        assert condition(env.infra_pool(), "Ready") == ("True", "Ready")

    @scenario
    async def test_machines_are_spread_over_the_failure_domains(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """Machines are spread evenly over the failure domains, also after scaling down.

        Proves: IM-06.
        """
        env.add_pool(4, failureDomains=["zone-1", "zone-2"])
        await env.settled(4)
        env.scale(2)
        await env.settled(2)
        note = env.kind.failure_domain_annotation
        placed = [machine["metadata"]["annotations"][note] for machine in env.infra_machines()]
        assert sorted(placed) == ["zone-1", "zone-2"]

    @scenario
    async def test_a_paused_pool_is_left_alone(self, env: PoolMachinesEnvironment) -> None:
        """While its Cluster is paused, a pool is neither scaled nor deleted.

        Proves: MP-20, SM-01.
        """
        env.add_pool(1)
        await env.settled(1)
        env.core.pause(env.cluster)
        await env.quiet()
        env.scale(3)
        await env.quiet()
        assert len(env.infra_machines()) == 1

        env.api.remove(env.kind.resource.kind, env.pool)
        await env.quiet()
        assert len(env.infrastructure.servers()) == 1
        env.core.pause(env.cluster, False)
        await env.gone()


class TestPoolMachinesWithSlowCaches(PoolMachinesConformance):
    """A pool with Machines whose caches lag behind."""

    slow = True

    @scenario
    async def test_nothing_is_created_twice(self, env: PoolMachinesEnvironment) -> None:
        """A manager with slow caches that is killed again and again creates no machine twice.

        Proves: SM-09, MP-07.
        """
        env.add_pool(12)
        for pause in (0.02, 0.05, 0.1, 0.2):
            await asyncio.sleep(pause)
            assert len(env.infra_machines()) <= 12
            await env.restart()
        await env.settled(12)
        env.scale(3)
        for pause in (0.02, 0.05, 0.1):
            await asyncio.sleep(pause)
            await env.restart()
        await env.settled(3)
        assert len(env.created()) == 12

    @scenario
    async def test_lagging_caches_neither_create_nor_remove_too_much(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A manager with slow caches creates and removes exactly the required machines.

        Proves: MP-07, MP-10.
        """
        env.add_pool(0)
        wanted, made, highest = 0, 0, 0
        for count in (6, 2, 8, 4):
            env.scale(count)
            made += max(0, count - wanted)
            wanted = count
            await env.settled(count)
            highest = max(highest, count)
        assert len(env.created()) == made
        assert len(env.infra_machines()) == wanted
