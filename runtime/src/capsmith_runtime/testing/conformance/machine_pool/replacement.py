"""Which machines a pool with Machines removes or replaces, and in which order."""

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


class TestPoolMachineReplacement(PoolMachinesConformance):
    """Which machines a pool with Machines removes or replaces, and in which order."""

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
        """A new spec replaces all machines, and at most one at a time lacks its Node."""
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
    async def test_machines_that_others_change_are_kept(self, env: PoolMachinesEnvironment) -> None:
        """Webhooks and policies that change new machines, and edits of one, replace no machine."""
        env.add_pool(3)
        found = env.other_field()
        if found is None:
            pytest.skip("the pool says nothing of its machines that could be changed")
        name, value = found
        env.change_new_machines({name: value})
        await env.settled(3)
        assert {machine["spec"].get(name) for machine in env.infra_machines()} == {value}
        edited = min(env.names())
        env.edit_machine(edited, {name: env.infra_pool()["spec"][name]})
        await env.settled(3)
        env.edit_machine(edited, {name: value})
        await env.settled(3)
        assert len(env.created()) == 3

    @scenario
    async def test_a_new_version_replaces_the_machines(self, env: PoolMachinesEnvironment) -> None:
        """A new Kubernetes version replaces all machines of the pool.

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

        # A next spec replaces the machine without a Node first, for that costs nothing.
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
        """While another autoscaler sets the size, ``replicas`` follows the existing machines.

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
