"""Leader election on a real API server, with short leases."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from pathlib import Path
from typing import cast

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube import leaderelection as leader
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType
from capsmith_runtime.kube.leaderelection import LeaderElector, LeadershipLost, LeaseTimings
from capsmith_runtime.kube.metrics import Metrics
from tests.runtime.support.faults import Fault, Hold, Loss, Request, failure
from tests.runtime.support.following import connected, sample
from tests.runtime.support.leases import (
    BRIEF,
    ENOUGH,
    FLEETING,
    PATIENT,
    SHORT,
    UNHURRIED,
    candidate,
    holder,
    lease,
    lease_version,
)
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually, running

STORMS: list[Fault] = [
    failure(500, "InternalError"),
    failure(429, "TooManyRequests", Retry_After="1"),
    failure(409, "Conflict"),
    failure(401, "Unauthorized"),
    Loss.DROP,
    Loss.UNANSWERED,
    Loss.SILENCE,
]


def named(fault: Fault) -> str:
    return str(getattr(fault, "status", fault))


async def test_a_manager_that_renews_keeps_leading(
    api: Api, kubeconfig: Path, namespace: str
) -> None:
    metrics = Metrics()
    async with (
        candidate(kubeconfig, namespace, "first", metrics, SHORT) as first,
        candidate(kubeconfig, namespace, "second", timings=SHORT) as second,
    ):
        await asyncio.wait_for(first.acquire(), ENOUGH)
        async with running(first.hold(), second.acquire()) as (_, waiting):
            await asyncio.wait({waiting}, timeout=1.5 * SHORT.duration)
            assert not waiting.done()
            assert holder(api, namespace) == "first"
            assert sample(metrics, "leader") == 1
        assert sample(metrics, "leader") == 0


async def test_a_released_lease_is_acquired_by_the_next(
    api: Api, kubeconfig: Path, namespace: str
) -> None:
    """At once: it does not wait until the lease has run out."""
    async with (
        candidate(kubeconfig, namespace, "first", timings=UNHURRIED) as first,
        candidate(kubeconfig, namespace, "second", timings=UNHURRIED) as second,
    ):
        await asyncio.wait_for(first.acquire(), ENOUGH)
        async with running(second.acquire()) as (waiting,):
            await asyncio.wait({waiting}, timeout=0.5)
            assert not waiting.done()
            await first.release()
            await asyncio.wait_for(waiting, ENOUGH)
    spec = lease(api, namespace)["spec"]
    assert spec["holderIdentity"] == "second"
    assert spec["leaseTransitions"] == 1


async def test_a_vanished_leader_is_replaced_when_the_lease_expires(
    api: Api, kubeconfig: Path, namespace: str
) -> None:
    """And no sooner, although both clocks in the lease may say so."""
    async with (
        candidate(kubeconfig, namespace, "first", timings=SHORT) as first,
        candidate(kubeconfig, namespace, "second", timings=SHORT) as second,
    ):
        await asyncio.wait_for(first.acquire(), ENOUGH)
        long_ago = {"spec": {"renewTime": "2001-01-01T00:00:00.000000Z"}}
        api.client.patch(lease(api, namespace), long_ago)
        began = time.monotonic()
        await asyncio.wait_for(second.acquire(), ENOUGH)
        assert time.monotonic() - began >= SHORT.duration


async def test_only_one_of_many_gets_it(api: Api, kubeconfig: Path, namespace: str) -> None:
    async with connected(kubeconfig) as client:
        key = NamespacedName(namespace, "lease")
        names = [f"c-{number}" for number in range(8)]
        electors = [LeaderElector(client, key, name, Metrics(), timings=PATIENT) for name in names]
        tasks = [asyncio.create_task(each.acquire()) for each in electors]
        await asyncio.wait(tasks, timeout=ENOUGH, return_when=asyncio.FIRST_COMPLETED)
        done, waiting = await asyncio.wait(tasks, timeout=1)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert len(done) == 1


@pytest.mark.parametrize("how", ["stolen", "deleted", "emptied"])
async def test_a_lease_that_is_lost_is_noticed(
    api: Api, kubeconfig: Path, namespace: str, how: str
) -> None:
    metrics, timings = Metrics(), LeaseTimings(120.0, 100.0, 0.2)
    async with candidate(kubeconfig, namespace, "first", metrics, timings) as first:
        await asyncio.wait_for(first.acquire(), ENOUGH)
        held = asyncio.create_task(first.hold())
        await asyncio.sleep(2 * timings.retry)
        if how == "deleted":
            api.client.delete(lease(api, namespace))
        else:
            thief = "thief" if how == "stolen" else ""
            api.client.patch(lease(api, namespace), {"spec": {"holderIdentity": thief}})
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(held, ENOUGH)  # sooner than by the deadline
        assert sample(metrics, "leader") == 0
        await first.release()
    if how == "stolen":
        assert holder(api, namespace) == "thief"


@pytest.mark.parametrize("fault", STORMS, ids=named)
async def test_a_storm_shorter_than_the_deadline_is_survived(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, fault: Fault
) -> None:
    async with candidate(kubeconfig, namespace, "first") as first:
        await asyncio.wait_for(first.acquire(), ENOUGH)
        async with running(first.hold()) as (held,):
            await asyncio.sleep(PATIENT.retry)
            storm = proxy.inject(fault, lambda request: True)
            await asyncio.sleep(0.4)
            proxy.heal(storm)
            version = lease_version(api, namespace)
            await eventually(lambda: lease_version(api, namespace) > version)
            assert not held.done()
    assert storm.hits >= 1


@pytest.mark.parametrize("fault", STORMS, ids=named)
async def test_a_storm_longer_than_the_deadline_is_not(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, fault: Fault
) -> None:
    """It ends before another process can lead, without flooding the server."""
    if fault is Loss.UNANSWERED:
        fault = Loss.DROP
    async with candidate(kubeconfig, namespace, "first", timings=FLEETING) as first:
        await asyncio.wait_for(first.acquire(), ENOUGH)
        held = asyncio.create_task(first.hold())
        await asyncio.sleep(FLEETING.retry)
        storm = proxy.inject(fault, lambda request: True)
        began = time.monotonic()
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(held, ENOUGH)
        assert time.monotonic() - began < FLEETING.duration - FLEETING.retry
        assert storm.hits <= 40


async def test_a_renewal_counts_from_its_request(
    proxy: FaultProxy, kubeconfig: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others count from when the server wrote it, which may be long before we hear of it."""
    answered, passed, now = threading.Event(), 0.0, leader._now
    monkeypatch.setattr(leader, "_now", lambda: now() + passed)
    timings = LeaseTimings(6000.0, 5000.0, 0.2)
    async with candidate(kubeconfig, namespace, "first", timings=timings) as first:
        await asyncio.wait_for(first.acquire(), ENOUGH)
        held = asyncio.create_task(first.hold())
        slow = proxy.inject(Hold(answered), lambda request: request.write, times=1)
        await eventually(lambda: slow.hits == 1)
        lost = proxy.inject(Loss.DROP, lambda request: True)
        passed += 3000.0
        answered.set()
        await eventually(lambda: lost.hits > 0)
        assert not held.done()
        passed += 2500.0
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(held, ENOUGH)


async def test_a_conflict_storm_on_writes_only_is_no_flood(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """Reading works and returns the own lease; writing fails."""
    async with candidate(kubeconfig, namespace, "first", timings=FLEETING) as first:
        await asyncio.wait_for(first.acquire(), ENOUGH)
        held = asyncio.create_task(first.hold())
        storm = proxy.inject(failure(409, "Conflict"), lambda request: request.write)
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(held, ENOUGH)
    assert storm.hits <= 20


async def test_acquire_survives_all_errors(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    for fault in STORMS:
        proxy.inject(fault, lambda request: True, times=1)
    async with candidate(kubeconfig, namespace, "first", timings=FLEETING) as first:
        await asyncio.wait_for(first.acquire(), ENOUGH)
    assert holder(api, namespace) == "first"


async def test_release_in_the_middle_of_a_renewal(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """The last renewal was done, but its answer did not arrive: it is released all the same."""
    async with candidate(kubeconfig, namespace, "first", timings=UNHURRIED) as first:
        await asyncio.wait_for(first.acquire(), ENOUGH)
        async with running(first.hold()):
            lost = proxy.inject(Loss.UNANSWERED, lambda request: request.write, times=1)
            await eventually(lambda: lost.hits == 1)
        await first.release()
    assert holder(api, namespace) == ""


async def test_release_leaves_a_successor_alone(api: Api, kubeconfig: Path, namespace: str) -> None:
    async with candidate(kubeconfig, namespace, "first") as first:
        await asyncio.wait_for(first.acquire(), ENOUGH)
        api.client.patch(lease(api, namespace), {"spec": {"holderIdentity": "second"}})
        await first.release()
    assert holder(api, namespace) == "second"


async def test_release_without_a_lease_asks_nothing(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    async with candidate(kubeconfig, namespace, "first") as first:
        await first.release()
    assert proxy.requests == []


@pytest.mark.parametrize("timings", [(1, 1, 1), (3, 4, 1), (3, 2, 2), (3, 2, 0)])
def test_timings_that_would_let_two_lead(timings: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="is required"):
        LeaseTimings(*timings)


class NoLease:
    """A client of an API server that has no Lease yet."""

    def __init__(self) -> None:
        self.created: JSON = {}

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        raise create_api_error(404, "NotFound", "no lease")

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        self.created = obj
        return obj


@pytest.mark.parametrize("duration", [15.0, 2.5, 15.4, 0.2])
async def test_a_lease_lasts_as_long_for_others_as_for_its_holder(duration: float) -> None:
    """It has whole seconds: if others took it earlier, two could lead."""
    client = NoLease()
    timings = LeaseTimings(duration=duration, renew_deadline=duration - 0.01, retry=0.1)
    key = NamespacedName("default", "lease")
    elector = LeaderElector(cast(KubeClient, client), key, "one", Metrics(), timings=timings)

    await elector.acquire()

    assert duration <= client.created["spec"]["leaseDurationSeconds"] < duration + 1


class SlowAnswers:
    """A client of an API server that stores a Lease at once, and answers its creation never."""

    def __init__(self) -> None:
        self.stored: JSON | None = None
        self.has_stored = asyncio.Event()

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        if self.stored is None:
            raise create_api_error(404, "NotFound", "no lease")
        return self.stored

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        self.stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}}
        self.has_stored.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def update(self, resource: ResourceType, obj: JSON) -> JSON:
        self.stored = obj
        return obj


@pytest.mark.parametrize("successor", ["", "another"])
async def test_a_lease_is_released_whose_answer_has_not_arrived(successor: str) -> None:
    """A manager may be stopped at that moment; the next one would wait until the lease expires."""
    client = SlowAnswers()
    key = NamespacedName("default", "lease")
    elector = LeaderElector(cast(KubeClient, client), key, "one", Metrics())
    async with running(elector.acquire()):
        await client.has_stored.wait()
    assert client.stored is not None
    if successor:
        client.stored["spec"]["holderIdentity"] = successor

    await elector.release()

    assert client.stored["spec"]["holderIdentity"] == successor


async def test_never_two_at_a_time(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """Three candidates that come and go under random faults."""
    chance, leading, most, terms = random.Random(7), set[str](), 0, 0

    async def life(name: str) -> None:
        nonlocal most, terms
        while True:
            async with candidate(kubeconfig, namespace, name, timings=BRIEF) as elector:
                await elector.acquire()
                leading.add(name)
                terms += 1
                most = max(most, len(leading))
                try:
                    await asyncio.wait_for(elector.hold(), chance.uniform(0.2, 1.0))
                except (TimeoutError, LeadershipLost):
                    pass
                finally:
                    leading.discard(name)
                if chance.random() < 0.8:
                    await elector.release()

    def some(request: Request) -> bool:
        return chance.random() < 0.3

    async with running(*(life(name) for name in "abc")):
        until = time.monotonic() + 120
        while terms < 5 and time.monotonic() < until:
            fault = proxy.inject(chance.choice(STORMS), some)
            await asyncio.sleep(0.2)
            proxy.heal(fault)
            await asyncio.sleep(0.1)
    assert most == 1
    assert terms >= 5
