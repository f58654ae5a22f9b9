"""The life of a pool with Machines: how its machines come and go."""

from __future__ import annotations

import asyncio

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import (
    PoolMachinesConformance,
)
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.fake_core import GROUP
from capsmith_runtime.testing.machine_pool.environment import (
    PoolMachinesEnvironment,
    SlowApi,
    is_pooled,
)


class TestPoolMachines(PoolMachinesConformance):
    """The life of a pool with Machines: how its machines come and go."""

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
    async def test_a_machine_waits_for_the_data_of_its_pool(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """No server is created before the MachinePool names bootstrap data.

        Proves: IM-19, IM-21.
        """
        env.machines.hold_machines = True
        env.add_pool(1)
        await env.eventually("it is made", lambda: len(env.infra_machines()) == 1)
        env.change_pool({"template": {"spec": {"bootstrap": {"dataSecretName": None}}}})
        await env.quiet()
        # A Machine of a pool names no Secret, or one without a name: that means nothing.
        env.machines.hold_machines = False
        expected = ("False", "WaitingForBootstrapData")
        await env.eventually(
            "it says so", lambda: condition(env.infra_machines()[0], "Ready") == expected
        )
        assert env.infrastructure.servers() == []
        env.name_bootstrap()
        await env.settled(1)

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
    async def test_machines_are_in_the_scope_of_their_pool(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """Machines have the watch filter's label from their pool, so one manager handles both.

        Proves: MP-20, MG-01.
        """
        await env.stop()
        env.add_pool(1)
        label = {"metadata": {"labels": {f"{GROUP}/watch-filter": "mine"}}}
        env.api.change(env.kind.resource.kind, env.pool, label)
        env.api.change(env.core.cluster_kind.resource.kind, env.cluster, label)
        env.start(watch_filter="another")
        await env.quiet()
        assert env.infra_machines() == []
        await env.stop()
        env.start(watch_filter="mine")
        await env.settled(1)
        (machine,) = env.infra_machines()
        assert label["metadata"]["labels"].items() <= machine["metadata"]["labels"].items()

    @scenario
    async def test_a_name_in_use_is_skipped(self, env: PoolMachinesEnvironment) -> None:
        """A pool skips the name of a machine that does not belong to it.

        Proves: SM-09.
        """
        kind = env.kind.machines
        env.api.add(
            {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": {"namespace": env.pool.namespace, "name": "p1-1"},
                "spec": env.manifests.sample_spec(kind.kind),
            }
        )
        env.add_pool(3)
        await env.settled(3)
        assert len([m for m in env.api.all(kind.kind) if is_pooled(m)]) == 3

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

    @scenario
    async def test_a_pool_is_kept_until_caches_show_its_machines(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A deleted pool keeps its finalizer although caches do not show its machines yet.

        Proves: SM-08.
        """
        assert isinstance(env.api, SlowApi)
        env.api.lags[env.kind.machines.kind] = 1.0
        env.machines.hold_machines = True
        env.add_pool(2)
        await env.eventually("they are made", lambda: len(env.infra_machines()) == 2)
        await env.quiet()
        env.api.remove(env.kind.resource.kind, env.pool)
        await env.gone()

    @scenario
    async def test_a_pool_is_deleted_with_all_its_machines(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A pool that is deleted while it grows leaves no machine behind.

        Proves: MP-15, SM-08.
        """
        env.add_pool(6)
        # In the middle of it: some machines are there, some are on their way.
        await env.eventually("it begins", lambda: len(env.infra_machines()) >= 2)
        env.api.change("MachinePool", env.machine_pool, {"metadata": {"finalizers": ["core/pool"]}})
        env.api.remove("MachinePool", env.machine_pool)
        env.api.remove(env.kind.resource.kind, env.pool)
        await env.gone()
