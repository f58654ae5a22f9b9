"""No address is allocated twice, in whatever order the requests of several managers arrive.

The managers do not elect a leader: each believes it is the leader, as two do while one of them is
cut off or suspended.  Some watch the claims of one namespace only, and all watch the same pool.
Requests and answers are late or get lost, managers die with requests in flight, and caches lag.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capsmith_runtime.contract.v1beta2 import CoreV1Beta2, V1Beta2Status
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.ipam import addresses
from capsmith_runtime.ipam.api import Pool, PoolState, RangePoolReconciler
from capsmith_runtime.ipam.controllers import IPAMControllers
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType
from capsmith_runtime.kube.controller import Controller
from capsmith_runtime.kube.events import EventRecorder
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.session_pools import SessionPools
from capsmith_runtime.testing.clock import VirtualLoop
from tests.runtime.support.scheduled_api import Client, Request, Server

GROUP = "ipam.example.com"
POOL = ResourceType(GROUP, "v1", "FooPool", "foopools", namespaced=False)
CLAIM, ADDRESS = "IPAddressClaim", "IPAddress"
KINDS = (POOL.kind, CLAIM, ADDRESS)
NAMESPACES = ("a", "b", "")
"""The namespaces that the managers watch; the last one watches all of them."""
KEYS = [NamespacedName(namespace, f"claim-{n}") for namespace in NAMESPACES[:2] for n in range(4)]
ADDRESSES = 4
EVENT_KINDS = [(), (CLAIM,), (CLAIM, POOL.kind), (CLAIM, ADDRESS), KINDS]
MOVES = ["claim", "free", "work", "work", "work", "arrive", "answer", "lose", "hear", "die", "wait"]
DRAIN_ROUNDS = 2000
SETTLE_SECONDS = 0.001
"""Of virtual time: less than any delay of the managers."""


class Ranges(RangePoolReconciler[object]):
    """Asynchronous, because threads do not follow virtual time."""

    async def reconcile_normal(self, pool: Pool[object]) -> PoolState:
        return PoolState(ranges=pool.ranges())


KIND = PoolKind(
    resource=POOL,
    finalizer="foopool.example.com",
    features=frozenset({"ranges"}),
    spec=dict,
    reconciler=Ranges,
)


class Manager:
    """The controllers of an IPAM provider without leader election.

    ``absent`` are the fields that the CRD of its pools lacks.
    """

    def __init__(self, server: Server, namespace: str, absent: tuple[str, ...]) -> None:
        self.namespace = namespace
        self.client = Client(server)
        client, metrics = cast(KubeClient, self.client), Metrics()
        scope = WatchScope(namespaces=(namespace,) if namespace else ())
        self._caches = Caches(client, metrics, CoreV1Beta2(), scope)
        executor = HandlerExecutor(metrics)
        context = ControllerContext(
            client=client,
            label="ipam-foo",
            contract="v1beta2",
            executor=executor,
            sessions=SessionPools(executor),
            events=EventRecorder(client, "foo", "foo", metrics),
            writer=V1Beta2Status(),
            sync_seconds=0,
        )
        kind = replace(KIND, resource=replace(POOL, absent_fields=absent))
        self._group = IPAMControllers((kind,))(self._caches, context)
        self._controllers = [
            Controller(
                kind, WorkQueue[NamespacedName](kind, metrics), reconcile, metrics, concurrency=3
            )
            for kind, reconcile in self._group.reconcilers()
        ]
        self._group.setup_watches({c.name: c.queue for c in self._controllers})
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def die(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        informers = (*self._group.informers, self._caches.clusters)
        async with asyncio.TaskGroup() as group:
            for informer in informers:
                group.create_task(informer.run())
            for informer in informers:
                await informer.synced.wait()
            for controller in self._controllers:
                group.create_task(controller.run())


class Scenario:
    """Three managers, one pool, and claims that are created and deleted at random."""

    def __init__(self, data: st.DataObject, absent: tuple[str, ...]) -> None:
        self.server = Server()
        self.absent = absent
        self.data = data
        self.managers: list[Manager] = []

    async def run(self, steps: int) -> None:
        self.server.create(_pool())
        self.managers = [self._new_manager(namespace) for namespace in NAMESPACES]
        await self._drain()
        for _ in range(steps):
            await self._step()
            await self._settle()
            self._check()
        await self._end()

    async def _step(self) -> None:
        match self.data.draw(st.sampled_from(MOVES)):
            case "claim":
                for key in self.data.draw(st.lists(st.sampled_from(KEYS), max_size=3)):
                    self._claim(key)
            case "free":
                self._free(self.data.draw(st.sampled_from(KEYS)))
            case "work":
                await self._work(self._manager(), self.data.draw(st.integers(1, 20)))
            case "arrive":
                waiting = [request for request in self.server.requests if not request.done]
                if waiting:
                    self.data.draw(st.sampled_from(waiting)).arrive()
            case "answer":
                done = [request for request in self.server.requests if request.done]
                if done:
                    self._answer(self.data.draw(st.sampled_from(done)))
            case "lose":
                if self.server.requests:
                    self.data.draw(st.sampled_from(self.server.requests)).get_lost()
            case "hear":
                kind = self.data.draw(st.sampled_from(KINDS))
                self._manager().client.hears(kind, self.data.draw(st.integers(1, 9)))
            case "die":
                manager = self._manager()
                self.managers.remove(manager)
                await manager.die()
                self.managers.append(self._new_manager(manager.namespace))
            case "wait":
                await asyncio.sleep(self.data.draw(st.sampled_from([0.2, 1.0, 30.0])))

    async def _work(self, manager: Manager, requests: int) -> None:
        """Let one manager work undisturbed for a while; it gets the events of some kinds only."""
        kinds = self.data.draw(st.sampled_from(EVENT_KINDS))
        for _ in range(requests):
            for kind in kinds:
                manager.client.hears(kind, len(self.server.log))
            await self._settle()
            mine = [r for r in self.server.requests if r.client is manager.client]
            if not mine:
                return
            if not mine[0].done:
                mine[0].arrive()
            self._answer(mine[0])
            await self._settle()
            self._check()

    def _answer(self, request: Request) -> None:
        self.server.requests.remove(request)
        request.get_through()

    def _send_all_events(self, manager: Manager) -> None:
        for kind in KINDS:
            manager.client.hears(kind, len(self.server.log))

    async def _drain(self) -> None:
        """Let all requests succeed and all events arrive."""
        for _ in range(DRAIN_ROUNDS):
            for manager in self.managers:
                self._send_all_events(manager)
            await self._settle()
            self._check()
            if not self.server.requests:
                return
            for request in self.server.requests[:]:
                if not request.done:
                    request.arrive()
                self._answer(request)
        raise AssertionError(f"never quiet: {[r.words for r in self.server.requests]}")

    async def _end(self) -> None:
        """Let everything arrive from now on: each claim for which there is an address gets one."""
        for _ in range(100):
            await self._drain()
            if self._is_served():
                break
            await asyncio.sleep(1.0)
        claims = self.server.all(CLAIM)
        bound = [claim for claim in claims if _is_bound(claim)]
        assert len(bound) == min(len(claims), ADDRESSES), [self.server.all(kind) for kind in KINDS]
        for manager in self.managers:
            await manager.die()

    def _is_served(self) -> bool:
        claims = self.server.all(CLAIM)
        if any("deletionTimestamp" in claim["metadata"] for claim in claims):
            return False
        bound = sum(1 for claim in claims if _is_bound(claim))
        return bound == len(self.server.all(ADDRESS)) == min(len(claims), ADDRESSES)

    def _check(self) -> None:
        """Check that all addresses of existing claims are different."""
        uids = {claim["metadata"]["uid"] for claim in self.server.all(CLAIM)}
        owned = [
            (address["spec"]["address"], address["metadata"]["name"])
            for address in self.server.all(ADDRESS)
            if address["metadata"]["ownerReferences"][0]["uid"] in uids
        ]
        addresses = [text for text, _ in owned]
        assert len(set(addresses)) == len(addresses), owned

    def _new_manager(self, namespace: str) -> Manager:
        return Manager(self.server, namespace, self.absent)

    def _manager(self) -> Manager:
        return self.data.draw(st.sampled_from(self.managers))

    def _claim(self, key: NamespacedName) -> None:
        if (CLAIM, key) not in self.server.objects:
            self.server.create(_new_claim(key))

    def _free(self, key: NamespacedName) -> None:
        with contextlib.suppress(NotFoundError):
            self.server.delete(CLAIM, key)

    @staticmethod
    async def _settle() -> None:
        await asyncio.sleep(SETTLE_SECONDS)


def _is_bound(claim: JSON) -> bool:
    return "addressRef" in claim.get("status", {})


def _pool() -> JSON:
    return {
        "apiVersion": POOL.api_version,
        "kind": POOL.kind,
        "metadata": {"name": "pool"},
        "spec": {"addresses": [f"10.0.0.1-10.0.0.{ADDRESSES}"], "prefix": 24},
    }


def _new_claim(key: NamespacedName) -> JSON:
    reference = {"apiGroup": GROUP, "kind": POOL.kind, "name": "pool"}
    return {
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2",
        "kind": CLAIM,
        "metadata": {"namespace": key.namespace, "name": key.name},
        "spec": {"poolRef": reference},
    }


def _run(scenario: Coroutine[Any, Any, None]) -> None:
    # The grace period of addresses without claims follows the wall clock.
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        patch.setattr(addresses, "GRACE_SECONDS", 0.0)
        runner.run(scenario)


@pytest.mark.parametrize("absent", [(), ("status.allocation",)], ids=["status", "annotation"])
@given(data=st.data(), steps=st.integers(5, 60))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_address_is_allocated_twice(
    absent: tuple[str, ...], data: st.DataObject, steps: int
) -> None:
    """Proves: IP-08, IP-09, IP-10, SM-09."""
    _run(Scenario(data, absent).run(steps))
