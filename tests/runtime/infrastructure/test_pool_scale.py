"""What pools with many machines cost: requests, and work for each machine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capsmith_runtime.infrastructure import Address, Instance, MachinePoolMachinesReconciler
from capsmith_runtime.infrastructure.machine_pool import create, machines, plan
from capsmith_runtime.infrastructure.machine_pool.machines import MachinePoolMachinesController
from capsmith_runtime.infrastructure.machine_pool.pool_machines import (
    CachedPoolMachines,
    PoolMachines,
    PoolMachinesLister,
)
from capsmith_runtime.infrastructure.machine_pool.steps import GROWTH_SECONDS
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing import clock
from capsmith_runtime.testing.environment import condition
from tests.counting import counted_calls
from tests.runtime.infrastructure.scripted_pools import (
    COMPONENT,
    POOL,
    Groups,
    environment,
    group_environment,
)
from tests.runtime.support.woken import counted_decodings, woken

MACHINE = POOL.machines.kind


def calls_of_a_look(machines: int, monkeypatch: Any) -> int:
    """Return the number of calls of a reconcile that has nothing to do."""
    found: list[int] = []
    reconcile = MachinePoolMachinesController.reconcile

    async def counting(self: MachinePoolMachinesController, key: NamespacedName) -> Any:
        with counted_calls() as calls:
            result = await reconcile(self, key)
        found.append(calls[0])
        return result

    async def scenario() -> None:
        env.add_pool(machines)
        await env.settled(machines)
        await env.quiet()
        before = len(env.api.requests)
        found.clear()
        # What the pool does not read still triggers a reconcile.
        env.api.change("MachinePool", env.machine_pool, {"metadata": {"labels": {"a": "1"}}})
        await env.quiet()
        env.api.change("MachinePool", env.machine_pool, {"metadata": {"labels": {"a": None}}})
        await env.quiet()
        env.api.change("Cluster", env.cluster, {"metadata": {"annotations": {"a": "1"}}})
        await env.quiet()
        assert len(env.api.requests) == before

    env = environment()
    with monkeypatch.context() as patch:
        patch.setattr(MachinePoolMachinesController, "reconcile", counting)
        env.run(scenario)
    return found[-1]


def test_a_look_with_nothing_to_do_costs_nothing_for_each_machine(monkeypatch: Any) -> None:
    """With 5,000 machines it took 2.3 s, and each event of a machine triggered one."""
    few, many = calls_of_a_look(5, monkeypatch), calls_of_a_look(25, monkeypatch)
    assert many - few < 20


def test_a_pool_in_deletion_decodes_only_machines_that_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each event of one machine reads all of the pool's machines."""
    repeated: list[int] = []
    read = PoolMachinesLister.read

    def read_twice(
        lister: PoolMachinesLister, pool: JSON, found: CachedPoolMachines
    ) -> PoolMachines:
        read(lister, pool, found)
        before = decodings[0]
        machines = read(lister, pool, lister.select(pool))
        repeated.append(decodings[0] - before)
        return machines

    async def scenario() -> None:
        env.add_pool(5)
        await env.settled(5)
        env.api.remove(POOL.resource.kind, env.pool)
        await env.gone()

    env = environment()
    monkeypatch.setattr(PoolMachinesLister, "read", read_twice)
    with counted_decodings(monkeypatch) as decodings:
        env.run(scenario)
    assert decodings[0] > 0
    assert set(repeated) == {0}


def test_a_growing_pool_reads_only_machines_that_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each event of one machine took 10 ms with 1,000 machines."""
    read: list[tuple[str, str]] = []
    instance = MachinePoolMachinesController._instance

    def record(controller: MachinePoolMachinesController, name: str, machine: JSON) -> Any:
        read.append((name, machine["metadata"]["resourceVersion"]))
        return instance(controller, name, machine)

    async def scenario() -> None:
        env.add_pool(30)
        await env.settled(30)

    env = environment()
    monkeypatch.setattr(MachinePoolMachinesController, "_instance", record)
    env.run(scenario)
    assert len({name for name, _ in read}) == 30
    assert len(read) == len(set(read))


def test_a_rollout_looks_only_at_machines_that_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them causes several reconciles, and each of these looked at all machines."""
    looked: list[tuple[str, str]] = []
    has_former_owner = create._has_former_owner

    def record(obj: JSON, pool: JSON) -> bool:
        looked.append((obj["metadata"]["name"], obj["metadata"]["resourceVersion"]))
        return has_former_owner(obj, pool)

    async def scenario() -> None:
        env.add_pool(5)
        await env.settled(5)
        old = env.names()
        env.change_pool({"template": {"spec": {"version": "v1.35.0"}}})
        await env.eventually("all are replaced", lambda: not old & env.names())
        await env.settled(5)

    env = environment()
    monkeypatch.setattr(create, "_has_former_owner", record)
    env.run(scenario)
    assert len({name for name, _ in looked}) == 10
    assert len(looked) == len(set(looked))


def test_a_growing_pool_is_reported_every_few_seconds() -> None:
    """A report has all machines: one for each few of them costs 1 GB for 5,000 machines."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        env.add_pool(120)
        await env.settled(120)
        seconds = loop.time() - began
        assert len(env.ids()) == 120
        written = env.api.written(POOL.resource.kind, env.pool).count("patch_status")
        # At the beginning, for the first machine and at the end, and every few seconds between.
        assert written <= 3 + seconds / GROWTH_SECONDS

    env = environment()
    env.run(scenario)


def test_a_pool_that_stops_growing_is_reported_as_it_is() -> None:
    """The last state of a pool that cannot complete is written, a few seconds late."""

    async def scenario() -> None:
        env.add_pool(3)
        await env.settled(3)
        env.machines.hold_machines = True
        env.scale(5)
        message = "3 of 5 machines are provisioned"
        await env.eventually("it says so", lambda: message in str(env.infra_pool()["status"]))
        env.scale(6)
        message = "3 of 6 machines are provisioned"
        await env.eventually("it says so", lambda: message in str(env.infra_pool()["status"]))

    env = environment()
    env.run(scenario)


def test_steps_of_a_pool_list_nothing() -> None:
    """Only the first step after a start reads the API server; later ones trust the caches."""

    async def scenario() -> None:
        env.add_pool(3)
        await env.settled(3)
        before = env.api.lists[MACHINE], env.api.lists["Machine"]
        for count in (5, 2, 4):
            env.scale(count)
            await env.settled(count)
        env.change_pool({"template": {"spec": {"version": "v1.35.0"}}})
        await env.settled(4)
        assert (env.api.lists[MACHINE], env.api.lists["Machine"]) == before
        assert len(env.created()) == len(set(env.created()))

    env = environment()
    env.run(scenario)


def test_the_first_step_of_a_process_reads_the_machines_from_the_server() -> None:
    """Its caches may be older than what the former leader has created."""

    async def scenario() -> None:
        env.add_pool(3)
        await env.settled(3)
        await env.restart()
        await env.quiet()
        before = env.api.lists[MACHINE]
        env.scale(4)
        await env.settled(4)
        assert env.api.lists[MACHINE] == before + 1

    env = environment()
    env.run(scenario)


def test_a_machine_that_has_left_the_watch_filter_is_neither_replaced_nor_deleted() -> None:
    """The caches do not have it, so the plan is made from the API server."""

    def label(kind: str, key: NamespacedName, value: str) -> None:
        labels = {"labels": {"cluster.x-k8s.io/watch-filter": value}}
        env.api.change(kind, key, {"metadata": labels})

    async def scenario() -> None:
        await env.stop()
        env.add_pool(2)
        label(POOL.resource.kind, env.pool, "mine")
        label(env.core.cluster_kind.resource.kind, env.cluster, "mine")
        env.start(watch_filter="mine")
        await env.settled(2)
        await env.stop()
        label(MACHINE, NamespacedName(env.pool.namespace, "p1-0"), "another")
        env.start(watch_filter="mine")
        for count in (3, 4):
            env.scale(count)
            await env.settled(count)
        assert env.names() == {"p1-0", "p1-1", "p1-2", "p1-3"}
        assert len(env.api.all("Machine")) == 4

    env = environment()
    env.run(scenario)


def test_a_rollout_creates_and_deletes_as_many_at_a_time_as_the_author_allows(
    monkeypatch: Any,
) -> None:
    """One at a time, 5,000 machines of five minutes each took 17 days."""
    monkeypatch.setattr(MachinePoolMachinesReconciler, "max_surge", "50%")
    monkeypatch.setattr(MachinePoolMachinesReconciler, "max_unavailable", 0)

    async def scenario() -> None:
        env.add_pool(4)
        await env.settled(4)
        old = env.names()
        env.machines.hold_nodes = True
        env.change_pool({"template": {"spec": {"version": "v1.35.0"}}})
        await env.eventually("two more", lambda: len(env.names()) == 6)
        await env.quiet()
        assert len(env.names()) == 6
        assert old < env.names()
        assert condition(env.infra_pool(), "Ready") == ("True", "RollingOut")
        env.machines.hold_nodes = False
        await env.eventually("all are replaced", lambda: not old & env.names())
        await env.settled(4)

    env = environment()
    env.run(scenario)


def test_a_wrong_limit_of_a_rollout_ends_the_manager_at_its_start(monkeypatch: Any) -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError, match="'many' is neither a number of machines"):
            async with woken(COMPONENT, environment().api):
                pass

    monkeypatch.setattr(MachinePoolMachinesReconciler, "max_surge", "many")
    clock.run(scenario())


def _instances(count: int, id_characters: int, addresses: int) -> list[Instance]:
    found = [Address("InternalIP", f"10.0.0.{number}") for number in range(addresses)]
    return [
        Instance(provider_id=f"tidal://{number:0{id_characters}}", name="n", addresses=found)
        for number in range(count)
    ]


def test_a_pool_is_reported_without_addresses_where_they_do_not_fit(monkeypatch: Any) -> None:
    async def scenario() -> None:
        env.add_pool(1)
        await env.eventually("it is reported", lambda: "status" in env.infra_pool())
        assert len(env.ids()) == 2000
        first, *_ = env.infra_pool()["status"]["instances"]
        assert "addresses" not in first
        assert condition(env.infra_pool(), "Ready") == ("True", "Ready")

    monkeypatch.setattr(Groups, "instances", _instances(2000, 200, 20))
    env = group_environment()
    env.run(scenario)


def test_a_pool_that_no_object_can_hold_is_named(monkeypatch: Any) -> None:
    """Etcd would refuse it, with an error that says nothing about pools."""

    async def scenario() -> None:
        env.add_pool(1)
        expected = ("False", "TooManyInstances")
        await env.eventually("it says so", lambda: condition(env.infra_pool(), "Ready") == expected)
        await env.quiet()
        assert env.ids() == []

    for instances in (_instances(4000, 300, 0), _instances(10_001, 8, 0)):
        monkeypatch.setattr(Groups, "instances", instances)
        env = group_environment()
        env.run(scenario)


def test_a_pool_of_more_machines_than_an_object_can_hold_is_refused() -> None:
    """Users can request two billion machines, and creating these would end the manager."""

    async def scenario() -> None:
        env.add_pool(2)
        await env.settled(2)
        env.scale(10_001)
        expected = ("Unknown", "TooManyInstances")
        await env.eventually("it says so", lambda: condition(env.infra_pool(), "Ready") == expected)
        await env.quiet()
        assert len(env.names()) == 2
        env.scale(3)
        await env.settled(3)

    env = environment()
    env.run(scenario)


def test_an_autoscaler_of_more_machines_than_an_object_can_hold_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def replicas(self: object, pool: object) -> int:
        return 10_001

    async def scenario() -> None:
        env.add_pool(2)
        env.note({"cluster.x-k8s.io/replicas-managed-by": "cloud"})
        expected = ("False", "InvalidResult")
        await env.eventually("it says so", lambda: condition(env.infra_pool(), "Ready") == expected)

    monkeypatch.setattr(MachinePoolMachinesReconciler, "replicas", replicas)
    env = environment()
    env.run(scenario)


def test_a_pool_that_is_scaled_down_while_it_grows_creates_no_more_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A step that creates thousands of machines keeps its worker, and does not see the change."""
    monkeypatch.setattr(plan, "MAX_CREATED", 10)

    async def scenario() -> None:
        env.add_pool(1)
        await env.settled(1)
        env.scale(40)
        await env.eventually("it grows", lambda: len(env.names()) > 5)
        env.scale(2)
        await env.settled(2)
        assert len(env.created()) <= 20

    env = environment()
    env.run(scenario)


def test_a_pool_grows_whatever_a_user_wrote_into_its_count() -> None:
    """The text of 5,000 digits is no number that Python reads, nor part of a name."""

    async def scenario() -> None:
        env.add_pool(1)
        await env.settled(1)
        annotations = {POOL.count_annotation: "9" * 5000}
        env.api.change(POOL.resource.kind, env.pool, {"metadata": {"annotations": annotations}})
        env.scale(2)
        await env.settled(2)
        assert env.names() == {"p1-0", "p1-1"}

    env = environment()
    env.run(scenario)


def test_a_pause_stops_the_deletion_of_a_pool_after_a_few_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The deletion of thousands of machines in one reconcile takes minutes."""
    monkeypatch.setattr(machines, "MAX_DELETED", 2)

    def pause_at_once(verb: str, kind: str, body: JSON) -> None:
        if (verb, kind) == ("delete", "Machine"):
            env.api.fault = None
            env.api.change("Cluster", env.cluster, {"spec": {"paused": True}})

    def deleted() -> int:
        return sum((verb, kind) == ("delete", "Machine") for verb, kind, _ in env.api.requests)

    async def scenario() -> None:
        env.add_pool(7)
        await env.settled(7)
        env.api.fault = pause_at_once
        env.api.remove(POOL.resource.kind, env.pool)
        await env.eventually("it is paused", lambda: deleted() > 0)
        await env.quiet()
        assert deleted() == 2

        env.api.change("Cluster", env.cluster, {"spec": {"paused": None}})
        await env.gone()

    env = environment()
    env.run(scenario)
