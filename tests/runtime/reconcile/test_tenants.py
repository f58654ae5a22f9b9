"""One tenant's cloud never answers: the objects of other tenants do not notice."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any

import pytest

from capsmith_runtime.errors import SessionError
from capsmith_runtime.infrastructure import (
    Credentials,
    InfraMachineDeleteScope,
    InfraMachineScope,
    SessionFactory,
)
from capsmith_runtime.kube import executor
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.controller import Controller, Result
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.handler_calls import DaemonThreadPool
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.reconcile import tenant_limits
from capsmith_runtime.reconcile.author_step import AuthorCalls
from capsmith_runtime.reconcile.session_pools import SessionPools
from capsmith_runtime.testing import infrastructure as testing
from tests.runtime.infrastructure.scripted_provider import AcmeMachineSpec
from tests.runtime.support.following import sample
from tests.runtime.support.waiting import eventually

LATENCY_SECONDS = 60.0
"""How late an object of a tenant may be because of another tenant.

A tenant that waits for calls of another waits for their time-out, which is 300 s.
"""

HUNG = "hung"
DEFERRED = 'reconciles_deferred_total{controller="AcmeMachine"}'


class Cloud:
    """Clouds of several tenants; that of ``HUNG`` answers nothing before ``recover``."""

    def __init__(self) -> None:
        self.recovered = threading.Event()
        self.recovered_async = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.served: dict[str, float] = {}
        self.logins: list[str] = []
        self.calls: list[str] = []

    def recover(self) -> None:
        self.recovered.set()
        self.recovered_async.set()

    def request(self, name: str) -> None:
        self.calls.append(name)
        if name.startswith(HUNG):
            self.recovered.wait(120)
        self.serve(name)

    async def request_async(self, name: str) -> None:
        self.calls.append(name)
        if name.startswith(HUNG):
            await self.recovered_async.wait()
        self.serve(name)

    def serve(self, name: str) -> None:
        self.loop.call_soon_threadsafe(self.served.setdefault, name, self.loop.time())


class Synchronous:
    """A reconciler with methods in threads."""

    session_factory: Any = None

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    def reconcile_normal(self, machine: Any) -> None:
        self.cloud.request(machine.name)

    def reconcile_delete(self, machine: Any) -> None:
        self.cloud.request(machine.name)


class Asynchronous(Synchronous):
    """The same on the event loop."""

    async def reconcile_normal(self, machine: Any) -> None:  # type: ignore[override]
        await self.cloud.request_async(machine.name)


class InThreads(Synchronous):
    """The same in threads of the event loop's default executor."""

    async def reconcile_normal(self, machine: Any) -> None:  # type: ignore[override]
        await asyncio.to_thread(self.cloud.request, machine.name)


class Logins(SessionFactory[str]):
    """The login of a hung cloud hangs."""

    cloud: Cloud

    def open(self, credentials: Credentials) -> str:
        self.cloud.logins.append(credentials.identity)
        if credentials.identity.startswith(HUNG):
            self.cloud.recovered.wait(120)
        return credentials.identity


class WithSession(Synchronous):
    """A reconciler whose sessions are opened first."""

    session_factory = Logins

    def reconcile_normal(self, machine: Any) -> None:
        self.cloud.serve(machine.name)

    def reconcile_delete(self, machine: Any) -> None:
        self.cloud.serve(machine.name)


class Site:
    """A controller of machines, as in a manager."""

    def __init__(
        self,
        reconciler: type[Synchronous],
        *,
        timeout: float = 300.0,
        identities: bool = True,
        threads: int = 32,
    ) -> None:
        asyncio.get_running_loop().set_default_executor(DaemonThreadPool(32))
        self.cloud = Logins.cloud = Cloud()
        self.metrics = Metrics()
        self.executor = HandlerExecutor(self.metrics, threads=threads, timeout=timeout)
        self.pools = SessionPools(self.executor)
        self.reconciler = reconciler(self.cloud)
        self.author = AuthorCalls(self.reconciler, self.pools)
        self.queue = WorkQueue[NamespacedName]("AcmeMachine", self.metrics)
        self.identities = identities
        self.deletes: set[NamespacedName] = set()
        self.began = 0.0
        controller = Controller("AcmeMachine", self.queue, self._reconcile, self.metrics)
        self.running = asyncio.create_task(controller.run())

    def add(self, tenant: str, count: int, *, deleted: bool = False) -> None:
        self.began = asyncio.get_running_loop().time()
        for number in range(count):
            key = NamespacedName(tenant, f"{tenant}-{number}")
            if deleted:
                self.deletes.add(key)
            self.queue.add(key)

    def served(self, tenant: str) -> list[float]:
        """Return how late each object of a tenant was served."""
        served = self.cloud.served.items()
        return [when - self.began for name, when in served if name.startswith(f"{tenant}-")]

    async def expect_served(self, tenant: str, count: int) -> None:
        await eventually(lambda: len(self.served(tenant)) == count)
        assert max(self.served(tenant)) <= LATENCY_SECONDS

    async def close(self) -> None:
        self.cloud.recover()
        self.queue.close()
        self.running.cancel()
        await asyncio.wait({self.running})

    async def _reconcile(self, key: NamespacedName) -> Result:
        credentials = Credentials(
            {"token": "x"}, key.namespace if self.identities else "", kind="AcmeIdentity"
        )
        if not self.identities:
            credentials = Credentials()
        delete = key in self.deletes
        hook: Any = self.reconciler.reconcile_normal
        scope: InfraMachineScope[Any] | InfraMachineDeleteScope[Any]
        if delete:
            hook = self.reconciler.reconcile_delete
            template = testing.infra_machine_deletion(AcmeMachineSpec(size="s", image="i"))
            scope = dataclasses.replace(template, name=key.name, _credentials=credentials)
        else:
            machine = testing.infra_machine(AcmeMachineSpec(size="s", image="i"))
            scope = dataclasses.replace(machine, name=key.name, credentials=credentials)
        owner = f"Cluster {key.namespace}/cluster"
        await self.author.call(key, hook, scope, deletion=delete, owner=owner)
        return Result()


CLOUDS = [
    pytest.param(Synchronous, True, id="threads"),
    pytest.param(Synchronous, False, id="threads of clusters without identity"),
    pytest.param(Asynchronous, True, id="event loop"),
    pytest.param(InThreads, True, id="default executor"),
    pytest.param(WithSession, True, id="login"),
]


@pytest.mark.parametrize("deleted", [False, True], ids=["normal", "delete"])
@pytest.mark.parametrize(("reconciler", "identities"), CLOUDS)
async def test_a_cloud_that_never_answers_costs_other_tenants_nothing(
    reconciler: type[Synchronous], identities: bool, deleted: bool
) -> None:
    site = Site(reconciler, identities=identities)
    site.add(HUNG, 100, deleted=deleted)
    site.add("b", 5)
    await site.expect_served("b", 5)
    site.add("c", 5, deleted=True)
    await site.expect_served("c", 5)
    assert not site.served(HUNG)
    site.cloud.recover()
    await eventually(lambda: len(site.served(HUNG)) == 100)
    await site.close()


@pytest.mark.parametrize(("reconciler", "identities"), CLOUDS)
async def test_nineteen_of_twenty_tenants_do_not_notice_the_other(
    reconciler: type[Synchronous], identities: bool
) -> None:
    site = Site(reconciler, identities=identities)
    others = [f"tenant{number:02}" for number in range(19)]
    site.add(HUNG, 20)
    for other in others:
        site.add(other, 5)
    for other in others:
        await site.expect_served(other, 5)
    began = len(site.cloud.calls)
    for other in others:
        site.add(other, 5, deleted=True)
    site.cloud.served.clear()
    for other in others:
        await site.expect_served(other, 5)
    assert len([name for name in site.cloud.calls if name.startswith(HUNG)]) <= 10
    assert began <= 19 * 5 + 10
    await site.close()


@pytest.mark.parametrize("namespaces", [1, 3])
@pytest.mark.parametrize("reconciler", [Synchronous, WithSession])
async def test_any_number_of_tenants_in_a_namespace_cost_other_namespaces_nothing(
    reconciler: type[Synchronous], namespaces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may create identities in a namespace may create more of them than there are threads."""
    monkeypatch.setattr(executor, "EXHAUSTED_SECONDS", 0.0)
    site = Site(reconciler, threads=4, timeout=1.0)
    for number in range(60):
        site.add(f"{HUNG}{number % namespaces}/{number}", 2)
    # Before the other tenants come: they find as many threads in use as is possible.
    await eventually(lambda: not len(site.queue))
    for number in range(5):
        site.add(f"b/{number}", 2)
    for number in range(5):
        await site.expect_served(f"b/{number}", 2)
    assert site.executor.is_healthy
    site.cloud.recover()
    await eventually(lambda: not site.executor.calls.names)
    assert not site.executor.is_crowded(f"AcmeIdentity {HUNG}0/0")
    await site.close()


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("reconciler", [Synchronous, WithSession])
async def test_a_call_that_ends_wakes_other_tenants_of_its_namespace(
    reconciler: type[Synchronous], together: bool
) -> None:
    """Their own tenants have no call that could wake them."""
    site = Site(reconciler, threads=1)
    tenants = [f"{HUNG}/{number}" for number in range(6)]
    for tenant in tenants[:2]:
        site.add(tenant, 1)
    if not together:
        await eventually(lambda: site.executor.is_crowded(f"AcmeIdentity {HUNG}/2"))
    for tenant in tenants[2:]:
        site.add(tenant, 1)
    await eventually(lambda: len(site.executor.waiting) == 4)
    site.cloud.recover()
    await eventually(lambda: all(map(site.served, tenants)), timeout=LATENCY_SECONDS)
    assert not site.executor.waiting
    await site.close()


async def test_all_workers_serve_one_tenant_alone() -> None:
    site = Site(Asynchronous)
    site.add(HUNG, 30)
    await eventually(lambda: len(site.cloud.calls) == 10)
    await eventually(lambda: not len(site.queue))
    assert sample(site.metrics, DEFERRED) == 0, "they would wait for a worker"
    assert len(site.cloud.calls) == 10, "no tenant has more calls than the kind has workers"
    name = Asynchronous.reconcile_normal.__qualname__
    assert f'hooks_in_flight{{hook="{name}"}} 10.0' in site.metrics.render().decode()
    site.cloud.recover()
    await eventually(lambda: len(site.served(HUNG)) == 30)
    await site.close()


async def test_a_login_that_hangs_is_not_tried_twice() -> None:
    site = Site(WithSession, timeout=0.05)
    pool = site.pools.of(site.reconciler).pool
    assert pool is not None
    for _ in range(3):
        with pytest.raises(SessionError):
            await pool.prepare(Credentials({"token": "x"}, HUNG, kind="AcmeIdentity"))
        pool._sessions["AcmeIdentity hung"].retry_at = 0.0
    assert site.cloud.logins == [HUNG]
    # A changed Secret may lead to another cloud, but not to any number of threads.
    for token in ("new", "newer", "newest"):
        with pytest.raises(SessionError):
            await pool.prepare(Credentials({"token": token}, HUNG, kind="AcmeIdentity"))
    assert len(site.cloud.logins) == 2
    site.cloud.recover()
    await eventually(lambda: not site.executor.calls.abandoned)
    await site.close()


async def test_a_tenant_whose_calls_hang_is_paused_with_back_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tenant_limits, "HANG_BASE_SECONDS", 0.2)
    site = Site(Synchronous, timeout=0.05)
    site.add("b", 1)
    await site.expect_served("b", 1)
    site.add(HUNG, 20)
    await eventually(lambda: len(site.cloud.calls) > 13)
    tenant = site.pools.limits.of("AcmeIdentity hung")
    site.cloud.recover()
    await eventually(lambda: len(site.served(HUNG)) == 20)
    assert tenant.paused_until == 0.0
    paused = [each for each in caplog.records if each.message == "calls hang and are paused"]
    values = [each.__dict__ for each in paused]
    assert len(values) >= 2
    assert "AcmeIdentity hung" in str(values[0])
    assert sample(site.metrics, 'identity_pauses_total{cause="hang"}') == len(values)
    await site.close()


@pytest.mark.parametrize("alone", [True, False])
async def test_a_restart_is_for_what_it_mends(monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    """If another tenant is served, a restart would only interrupt that."""
    monkeypatch.setattr(executor, "EXHAUSTED_SECONDS", 0.0)
    monkeypatch.setattr(executor, "SLOW_SECONDS", 0.01)
    never = threading.Event()
    runner = HandlerExecutor(Metrics(), threads=2, timeout=0.05)
    if not alone:
        assert await runner.call(int, "1", tenant="b") == 1
    for _ in range(2):
        with pytest.raises(executor.StillRunningError):
            await runner.call(never.wait, 120, tenant=HUNG)
    assert runner.is_healthy == (not alone)
    if not alone:
        assert await runner.call(int, "1", tenant="b") == 1
        monkeypatch.setattr(executor, "LENT_THREADS", 0)
        with pytest.raises(executor.StillRunningError):
            await runner.call(never.wait, 120, tenant="c")
        assert not runner.is_healthy, "no thread is left"
    never.set()
    await eventually(lambda: runner.is_healthy)
