"""Crashes, moves and competing managers: no address is lost or allocated twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from functools import partial

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.manager import Manager
from capsmith_runtime.options import Options
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance
from capsmith_runtime.testing.environment import keep_process
from capsmith_runtime.testing.ipam.environment import (
    ADDRESS,
    CLAIM,
    CLUSTER_NAME,
    NAMESPACE,
    IPAMEnvironment,
    reference_to,
)

WATCH_FILTER = "cluster.x-k8s.io/watch-filter"
DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"
MANY = {"addresses": ["10.0.0.0/25"], "prefix": 24}
"""Spec fields for a pool with 127 addresses."""


class TestAddressFaults(IPAMConformance):
    """Crashes, moves and competing managers: no address is lost or allocated twice."""

    @scenario
    async def test_a_new_manager_changes_nothing(self, env: IPAMEnvironment) -> None:
        """After a restart, claims keep their addresses, and the manager writes nothing.

        Proves: SM-09, ST-11.
        """
        pool = env.add_pool()
        keys = [env.add_claim(pool, f"a{number}") for number in range(3)]
        given = [await env.gets(key) for key in keys]
        await env.counts(pool, total=5, used=3, free=2)
        await env.settles(pool)
        env.api.requests.clear()
        for _ in range(3):
            await env.restart()
            await env.quiet()
        assert [await env.gets(key) for key in keys] == given
        # A new session reads the Secret of its identity.
        assert [each for each in env.asked() if each[0] != "get"] == []

    @scenario
    async def test_a_manager_may_crash_before_any_write(self, env: IPAMEnvironment) -> None:
        """Whichever write a manager crashes before, each claim gets exactly one address.

        The n-th write and all later ones are lost; then another manager starts.

        Proves: SM-09, IP-09, IP-10.
        """
        pool = env.add_pool()
        await env.quiet()
        for number in itertools.count(1):
            key = NamespacedName(NAMESPACE, f"a{number}")
            death = _Death(env, number)
            env.add_claim(pool, key.name)
            await death.or_until(partial(env.has_address, key))
            env.api.remove(CLAIM, key)
            await death.or_until(partial(env.is_gone, CLAIM, key))
            await env.eventually("the address is back", lambda: env.given() == [])
            env.api.fault = None
            if not death.struck:
                break
        assert number > len(("finalizer", "pool", "address", "status", "give back", "finalizer"))
        await env.counts(pool, total=5, used=0, free=5)

    @scenario
    async def test_two_managers_allocate_no_address_twice(self, env: IPAMEnvironment) -> None:
        """Two managers that both believe they are the leader never allocate the same address twice.

        Only the manager that writes the pool first can allocate.

        Proves: IP-08, IP-09, SM-09.
        """
        pool = env.add_pool(MANY)
        options = Options(
            own_namespace=env.component.namespace,
            diagnostics_address="127.0.0.1:0",
            status_debounce=0.1,
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            manager = Manager(env.component, options, env.api, Metrics(), keep_process)
            group.create_task(manager.run(stop))
            keys = [env.add_claim(pool, f"a{number}") for number in range(60)]
            given = [await env.gets(key) for key in keys]
            assert len(set(given)) == len(keys)
            for key in keys[:30]:
                env.api.remove(CLAIM, key)
            more = [env.add_claim(pool, f"b{number}") for number in range(30)]
            for key in more:
                await env.gets(key)
            for key in keys[:30]:
                await env.goes(CLAIM, key)
            await env.quiet()
            # A manager may create an address whose claim is gone by then, and may have to try again
            # to delete it.
            assert len(env.given()) == len(set(env.given()))
            await env.eventually("no address lacks a claim", lambda: len(env.given()) == 60)
            stop.set()
        assert len(set(env.given())) == 60

    @scenario
    async def test_an_address_survives_a_move(self, env: IPAMEnvironment) -> None:
        """A claim keeps its address after ``clusterctl move``.

        In the target cluster, objects have other UIDs and no status, and their Cluster is paused.

        Proves: IP-11, MV-07, MV-08, ST-11.
        """
        pool, cluster = env.add_pool(), env.add_cluster()
        taken = [env.add_claim(pool, f"a{n}", cluster=cluster.name) for n in range(3)]
        given = [await env.gets(key) for key in taken]
        await env.counts(pool, total=5, used=3, free=2)
        moved = {key: _moved(env, key) for key in taken[1:]}
        env.api.change("Cluster", cluster, {"spec": {"paused": True}})
        await env.quiet()
        for key in taken:
            await _remove_at_source(env, key)
        # This is the target now, with a pool without a status.
        env.api.change(env.kind.resource.kind, pool, {"status": None})
        await env.restart()
        for claim, address in moved.values():
            _add_at_target(env, pool, claim, address)
        await env.quiet()
        assert not any(env.has_address(key) for key in moved)

        env.api.change("Cluster", cluster, {"spec": {"paused": None}})
        assert [await env.gets(key) for key in moved] == given[1:]
        for key in moved:
            found = env.address(key)
            assert found is not None
            uids = {owner["uid"] for owner in found["metadata"]["ownerReferences"]}
            assert uids == {
                env.claim(key)["metadata"]["uid"],
                env.pool(pool)["metadata"]["uid"],
            }
        await env.counts(pool, total=5, used=2, free=3)

    @scenario
    async def test_only_claims_with_the_label_are_reconciled(self, env: IPAMEnvironment) -> None:
        """A manager with a watch filter leaves claims without its label unchanged.

        Proves: MG-01.
        """
        await env.stop()
        pool = env.add_pool()
        label = {WATCH_FILTER: "mine"}
        env.api.change(env.kind.resource.kind, pool, {"metadata": {"labels": label}})
        ours = env.add_claim(pool, "ours", labels=label)
        theirs = env.add_claim(pool, "theirs", labels={WATCH_FILTER: "another"})
        env.start(watch_filter="mine")
        await env.gets(ours)
        await env.quiet()
        assert env.api.written(CLAIM, theirs) == []

    @scenario
    async def test_addresses_of_all_namespaces_count(self, env: IPAMEnvironment) -> None:
        """Addresses in all namespaces count as used, even if a manager watches only one namespace.

        Proves: MG-01, IP-09.
        """
        pool = env.add_pool()
        first = env.add_claim(pool, "first")
        await env.gets(first)
        await env.stop()
        env.start(namespaces=("elsewhere",))
        other = _elsewhere(env, env.claim(first))
        if not env.kind.resource.namespaced:
            await env.gets(other)
        await env.quiet()
        assert len(set(env.given())) == len(env.given())


class _Death:
    """Loses the manager's n-th write and all later ones, then replaces the manager."""

    def __init__(self, env: IPAMEnvironment, number: int) -> None:
        self.struck = False
        self._env = env
        self._left = number
        env.api.fault = self._fault

    async def or_until(self, holds: Callable[[], bool]) -> None:
        """Wait until ``holds`` returns true, if necessary with another manager."""
        await self._env.eventually("held, or struck", lambda: self._left <= 0 or holds())
        if self._left <= 0 and not self.struck:
            self.struck = True
            await self._env.kill()
            self._env.api.fault = None
            self._env.start()
        await self._env.eventually("held", holds)

    def _fault(self, verb: str, kind: str, body: JSON) -> None:
        self._left -= 1
        if self._left <= 0:
            raise create_api_error(500, "InternalError", "the manager is dead")


def _moved(env: IPAMEnvironment, key: NamespacedName) -> tuple[JSON, JSON]:
    """Return claim and IPAddress as clusterctl creates them in the target cluster."""
    claim, address = env.claim(key), env.address(key)
    assert address is not None
    for obj in (claim, address):
        obj.pop("status", None)
        for name in ("uid", "resourceVersion", "generation"):
            obj["metadata"].pop(name, None)
        assert obj["metadata"]["finalizers"]
    assert address["metadata"]["labels"] == {CLUSTER_NAME: "c1"}
    return claim, address


async def _remove_at_source(env: IPAMEnvironment, key: NamespacedName) -> None:
    """Remove claim and IPAddress as clusterctl does; their manager must not write to them."""
    for kind in (ADDRESS, CLAIM):
        env.api.change(kind, key, {"metadata": {"annotations": None}})
        env.api.change(kind, key, {"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}})
        env.api.requests.clear()
        env.api.remove(kind, key)
        await env.quiet()
        assert env.api.written(kind, key) == []
        env.api.change(kind, key, {"metadata": {"finalizers": None}})


def _add_at_target(env: IPAMEnvironment, pool: NamespacedName, claim: JSON, address: JSON) -> None:
    """Create claim and IPAddress, where the address's owners get the target cluster's UIDs."""
    claim = env.api.add(claim)
    owners = [{**reference_to(claim), "controller": True, "blockOwnerDeletion": True}]
    owners.append({**reference_to(env.pool(pool)), "uid": "of the pool at the source"})
    address["metadata"]["ownerReferences"] = owners
    env.api.add(address)


def _elsewhere(env: IPAMEnvironment, claim: JSON) -> NamespacedName:
    key = NamespacedName("elsewhere", "other")
    metadata = {"namespace": key.namespace, "name": key.name}
    new = {name: claim[name] for name in ("apiVersion", "kind", "spec")}
    env.api.add({**new, "metadata": metadata})
    return key
