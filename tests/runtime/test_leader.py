"""Leader election on a real API server, with short leases."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from capsmith_runtime.client import JSON, Key
from capsmith_runtime.leader import LeaderElector, LeadershipLost, LeaseTimings
from capsmith_runtime.metrics import Metrics

from tests.runtime.support.faults import Fault, Hold, Loss, Request, failure
from tests.runtime.support.following import connected, sample
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually, running

LEASES = "coordination.k8s.io/v1"
TIMINGS = LeaseTimings(duration=2.0, renew_deadline=1.2, retry=0.2)
# A machine that has more to do than this loses no lease of these.
PATIENT = LeaseTimings(duration=8.0, renew_deadline=6.0, retry=0.2)
SLACK = 0.8
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


@asynccontextmanager
async def candidate(
    kubeconfig: Path,
    namespace: str,
    identity: str,
    metrics: Metrics | None = None,
    timings: LeaseTimings = TIMINGS,
) -> AsyncIterator[LeaderElector]:
    metrics = metrics or Metrics()
    async with connected(kubeconfig, metrics) as client:
        key = Key(namespace, "lease")
        yield LeaderElector(client, key, identity, metrics, timings=timings)


def lease(api: Api, namespace: str) -> JSON:
    return api.client.get(LEASES, "Lease", "lease", namespace)


def holder(api: Api, namespace: str) -> str:
    return str(lease(api, namespace)["spec"].get("holderIdentity"))


async def test_one_leads_and_the_next_takes_over_what_is_released(
    api: Api, kubeconfig: Path, namespace: str
) -> None:
    metrics = Metrics()
    async with (
        candidate(kubeconfig, namespace, "first", metrics) as first,
        candidate(kubeconfig, namespace, "second") as second,
    ):
        await asyncio.wait_for(first.acquire(), 5)
        waiting = asyncio.create_task(second.acquire())
        async with running(first.hold()):
            await asyncio.wait({waiting}, timeout=1.5 * TIMINGS.duration)
            assert not waiting.done()
            assert holder(api, namespace) == "first"
            assert sample(metrics, "leader") == 1
        assert sample(metrics, "leader") == 0
        began = time.monotonic()
        await first.release()
        await asyncio.wait_for(waiting, 5)
        assert time.monotonic() - began < TIMINGS.retry * 1.2 + SLACK
    spec = lease(api, namespace)["spec"]
    assert spec["holderIdentity"] == "second"
    assert spec["leaseTransitions"] == 1


async def test_who_vanishes_is_followed_when_the_lease_has_run_out(
    api: Api, kubeconfig: Path, namespace: str
) -> None:
    """And no sooner, although both clocks in the lease may say so."""
    async with (
        candidate(kubeconfig, namespace, "first") as first,
        candidate(kubeconfig, namespace, "second") as second,
    ):
        await asyncio.wait_for(first.acquire(), 5)
        long_ago = {"spec": {"renewTime": "2001-01-01T00:00:00.000000Z"}}
        api.client.patch(lease(api, namespace), long_ago)
        began = time.monotonic()
        await asyncio.wait_for(second.acquire(), 10)
        took = time.monotonic() - began
    assert TIMINGS.duration <= took < TIMINGS.duration + TIMINGS.retry * 1.2 + SLACK


async def test_only_one_of_many_gets_it(api: Api, kubeconfig: Path, namespace: str) -> None:
    async with connected(kubeconfig) as client:
        key = Key(namespace, "lease")
        names = [f"c-{number}" for number in range(8)]
        electors = [LeaderElector(client, key, name, Metrics(), timings=PATIENT) for name in names]
        tasks = [asyncio.create_task(each.acquire()) for each in electors]
        await asyncio.wait(tasks, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        done, waiting = await asyncio.wait(tasks, timeout=1)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert len(done) == 1


@pytest.mark.parametrize("how", ["stolen", "deleted", "emptied"])
async def test_a_lease_that_is_lost_is_noticed(
    api: Api, kubeconfig: Path, namespace: str, how: str
) -> None:
    metrics = Metrics()
    async with candidate(kubeconfig, namespace, "first", metrics) as first:
        await asyncio.wait_for(first.acquire(), 5)
        held = asyncio.create_task(first.hold())
        await asyncio.sleep(2 * TIMINGS.retry)
        if how == "deleted":
            api.client.delete(lease(api, namespace))
        else:
            thief = "thief" if how == "stolen" else ""
            api.client.patch(lease(api, namespace), {"spec": {"holderIdentity": thief}})
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(held, TIMINGS.retry + SLACK)
        assert sample(metrics, "leader") == 0
        await first.release()
    if how == "stolen":
        assert holder(api, namespace) == "thief"


@pytest.mark.parametrize("fault", STORMS, ids=named)
async def test_a_storm_shorter_than_the_deadline_is_survived(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, fault: Fault
) -> None:
    async with candidate(kubeconfig, namespace, "first", timings=PATIENT) as first:
        await asyncio.wait_for(first.acquire(), 10)
        async with running(first.hold()) as (held,):
            await asyncio.sleep(PATIENT.retry)
            storm = proxy.inject(fault, lambda request: True)
            await asyncio.sleep(0.4)
            proxy.heal(storm)
            version = lease(api, namespace)["metadata"]["resourceVersion"]
            await eventually(lambda: lease(api, namespace)["metadata"]["resourceVersion"] > version)
            assert not held.done()
    assert storm.hits >= 1


@pytest.mark.parametrize("fault", STORMS, ids=named)
async def test_a_storm_longer_than_the_deadline_is_not(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, fault: Fault
) -> None:
    """It ends before anybody else can lead, and the server is not flooded meanwhile."""
    if fault is Loss.UNANSWERED:
        fault = Loss.DROP
    async with candidate(kubeconfig, namespace, "first") as first:
        await asyncio.wait_for(first.acquire(), 5)
        held = asyncio.create_task(first.hold())
        await asyncio.sleep(TIMINGS.retry)
        storm = proxy.inject(fault, lambda request: True)
        began = time.monotonic()
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(held, 5)
        assert time.monotonic() - began < TIMINGS.duration - TIMINGS.retry
        assert storm.hits <= 40


async def test_a_renewal_counts_from_when_it_was_asked_for(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """Others count from when the server wrote it, which may be long before we hear of it."""
    answered = threading.Event()
    async with candidate(kubeconfig, namespace, "first") as first:
        await asyncio.wait_for(first.acquire(), 5)
        held = asyncio.create_task(first.hold())
        slow = proxy.inject(Hold(answered), lambda request: request.write, times=1)
        await eventually(lambda: slow.hits == 1)
        asked = time.monotonic()
        proxy.inject(Loss.DROP, lambda request: True)
        await asyncio.sleep(0.45)
        answered.set()
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(held, 5)
    assert time.monotonic() - asked < TIMINGS.renew_deadline + 0.3


async def test_a_conflict_storm_on_writes_only_is_no_flood(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """Reading works, and says that the lease is ours; writing does not."""
    async with candidate(kubeconfig, namespace, "first") as first:
        await asyncio.wait_for(first.acquire(), 5)
        held = asyncio.create_task(first.hold())
        storm = proxy.inject(failure(409, "Conflict"), lambda request: request.write)
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(held, 5)
    assert storm.hits <= 20


async def test_acquire_goes_on_through_anything(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    for fault in STORMS:
        proxy.inject(fault, lambda request: True, times=1)
    async with candidate(kubeconfig, namespace, "first") as first:
        await asyncio.wait_for(first.acquire(), 15)
    assert holder(api, namespace) == "first"


async def test_release_in_the_middle_of_a_renewal(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """The last renewal was done, but its answer did not arrive: it is released all the same."""
    async with candidate(kubeconfig, namespace, "first") as first:
        await asyncio.wait_for(first.acquire(), 5)
        async with running(first.hold()):
            lost = proxy.inject(Loss.UNANSWERED, lambda request: request.write, times=1)
            await eventually(lambda: lost.hits == 1)
        await first.release()
    assert holder(api, namespace) == ""


async def test_release_leaves_a_successor_alone(api: Api, kubeconfig: Path, namespace: str) -> None:
    async with candidate(kubeconfig, namespace, "first") as first:
        await asyncio.wait_for(first.acquire(), 5)
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


async def test_never_two_at_a_time(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str
) -> None:
    """Three candidates that come and go under random faults."""
    chance, leading, most, terms = random.Random(7), set[str](), 0, 0

    async def life(name: str) -> None:
        nonlocal most, terms
        while True:
            async with candidate(kubeconfig, namespace, name) as elector:
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
        until = time.monotonic() + 30
        while terms < 5 and time.monotonic() < until:
            fault = proxy.inject(chance.choice(STORMS), some)
            await asyncio.sleep(0.2)
            proxy.heal(fault)
            await asyncio.sleep(0.1)
    assert most == 1
    assert terms >= 5
