"""Lifecycle of a pool with Machines: how its machines are created, removed and replaced."""

from __future__ import annotations

import asyncio

import pytest

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import PoolMachinesConformance
from capsmith_runtime.testing.machine_pool.environment import (
    DELETE,
    ELSEWHERE,
    PoolMachinesEnvironment,
)
from capsmith_runtime.testing.provider import LocatesServers


class TestPoolMachines(PoolMachinesConformance):
    """Lifecycle of a pool with Machines: how its machines are created and removed."""

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
        assert env.shows(env.infra_pool(), "Ready", "True")

    @scenario
    async def test_machines_are_spread_over_the_failure_domains(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """Machines are spread evenly over the failure domains, even after scaling down.

        If the test double has the method ``failure_domains``, their servers are where they say.

        Proves: IM-06.
        """
        domains = env.failure_domains()
        env.add_pool(4, failureDomains=domains)
        await env.settled(4)
        env.scale(2)
        await env.settled(2)
        note = env.kind.failure_domain_annotation
        placed = [machine["metadata"]["annotations"][note] for machine in env.infra_machines()]
        assert sorted(placed) == domains
        if isinstance(env.infrastructure, LocatesServers):
            assert sorted(env.infrastructure.failure_domains().values()) == domains

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
        """A manager with slow caches creates no machine twice, even if it is killed repeatedly.

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


class TestPoolMachineReplacement(PoolMachinesConformance):
    """The order in which a pool with Machines removes or replaces its machines."""

    @scenario
    async def test_marked_machines_are_deleted_first(self, env: PoolMachinesEnvironment) -> None:
        """Scaling down deletes Machines with the annotation ``delete-machine`` first.

        Proves: MP-10.
        """
        env.add_pool(4)
        await env.settled(4)
        chosen = sorted(env.names())[:2]
        for name in chosen:
            env.note_machine(name, {DELETE: ""})
        await env.quiet()
        env.scale(2)
        await env.settled(2)
        assert not env.names() & set(chosen)

    @scenario
    async def test_a_new_spec_replaces_one_machine_at_a_time(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A new spec replaces all machines; at no time are two or more of them without a Node."""
        env.add_pool(3)
        await env.settled(3)
        before = env.names()
        found = env.other_field()
        if found is None:
            pytest.skip("the pool says nothing of its machines that could be changed")
        name, value = found
        env.api.change(env.kind.resource.kind, env.pool, {"spec": {name: value}})
        while env.names() & before:
            assert env.joined() >= 2
            await asyncio.sleep(0.005)
        await env.settled(3)
        assert {machine["spec"].get(name) for machine in env.infra_machines()} == {value}

    @scenario
    async def test_a_new_version_replaces_the_machines(self, env: PoolMachinesEnvironment) -> None:
        """A new Kubernetes version replaces all of the pool's machines.

        Proves: MP-10.
        """
        env.add_pool(2)
        await env.settled(2)
        before = env.names()
        env.change_pool({"template": {"spec": {"version": "v1.35.0"}}})
        await env.eventually(
            "all are new",
            lambda: not env.names() & before,
        )
        await env.settled(2)

    @scenario
    async def test_a_machine_that_does_not_start_stops_the_replacement(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A replacement that does not start stops the rollout: working machines are kept."""
        env.add_pool(3)
        await env.settled(3)
        await env.eventually("all have Nodes", lambda: env.joined() == 3)
        env.machines.hold_nodes = True
        env.change_pool({"template": {"spec": {"version": "v1.35.0"}}})
        await env.eventually("one is replaced", lambda: len(env.created()) == 4)
        await env.quiet()
        assert (env.joined(), len(env.created())) == (2, 4)

        # A later spec first replaces the machine without a Node, because that costs nothing.
        env.machines.hold_nodes = False
        env.change_pool({"template": {"spec": {"version": "v1.36.0"}}})
        await env.settled(3)
        await env.eventually("all have Nodes", lambda: env.joined() == 3)

    @scenario
    async def test_a_machine_that_failed_a_health_check_is_replaced(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """A machine that failed its health check is replaced by exactly one new machine.

        Proves: MP-10.
        """
        env.add_pool(3)
        await env.settled(3)
        name = env.infra_machines()[0]["metadata"]["name"]
        entry = {"type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation"}
        key = NamespacedName(env.pool.namespace, name)
        env.api.change("Machine", key, {"status": {"conditions": [entry]}})
        await env.eventually("it is gone", lambda: env.api.find("Machine", key) is None)
        await env.settled(3)
        assert len(env.created()) == 4

    @scenario
    async def test_an_autoscaler_elsewhere_decides_on_the_number(
        self, env: PoolMachinesEnvironment
    ) -> None:
        """While an external autoscaler sets the size, ``replicas`` follows the existing machines.

        Proves: MP-17.
        """
        env.add_pool(3)
        await env.settled(3)
        env.note({ELSEWHERE: "an-autoscaler"})
        name = env.infra_machines()[0]["metadata"]["name"]
        env.api.remove("Machine", NamespacedName(env.pool.namespace, name))
        await env.eventually("core follows", lambda: env.replicas() == 2)
        env.scale(5)
        await env.eventually("core follows again", lambda: env.replicas() == 2)
        await env.settled(2)
        env.note({ELSEWHERE: "false"})
        env.scale(3)
        await env.settled(3)
