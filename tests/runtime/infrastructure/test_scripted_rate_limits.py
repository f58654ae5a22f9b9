"""How often methods are called: rates and pauses of an identity, delays of one object."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capsmith_runtime.infrastructure import (
    Credentials,
    Deleted,
    RateLimitedError,
    ReconcileError,
    SessionFactory,
)
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.fake_api import copy_object
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachineReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

PROVIDER = scripted_provider.PROVIDER


class Clients(SessionFactory[str]):
    """Declares a rate."""

    rate = 2.0
    burst = 1

    def open(self, credentials: Credentials) -> str:
        return credentials["token"]


def _now() -> float:
    return asyncio.get_running_loop().time()


class TestRates(ScriptedMachines):
    """Calls for one identity."""

    @pytest.mark.parametrize("declared", [False, True], ids=["flag", "declared"])
    @scenario
    async def test_calls_of_an_identity_keep_the_rate(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
        declared: bool,
    ) -> None:
        await env.stop()
        if declared:
            monkeypatch.setattr(ScriptedMachineReconciler, "session_factory", Clients)
            env.start(sync_period=0)
        else:
            env.start(hook_rate=2.0, hook_burst=1, sync_period=0)
        times: list[float] = []
        loop = asyncio.get_running_loop()

        def call(machine: Any) -> Any:
            times.append(loop.time())
            return PROVISIONED

        normal(call)
        cluster = await env.running_cluster()
        keys = [env.core.add_machine(cluster, f"m{number}") for number in range(20)]
        await env.eventually("provisioned", lambda: all(env.has_machine(key) for key in keys))
        assert len(times) >= 20
        assert times[-1] - times[0] >= (len(times) - 1) / 2.0 - 0.5

    @scenario
    async def test_a_machine_that_waits_occupies_no_worker(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        await env.stop()
        env.start(hook_rate=0.1, hook_burst=1, sync_period=0, concurrency=1)
        script = normal(PROVISIONED)
        cluster = env.core.add_cluster()
        await env.cluster_is_provisioned(cluster)
        env.core.infrastructure_is_ready(cluster)
        keys = [env.core.add_machine(cluster, f"m{number}") for number in range(3)]
        await env.quiet()
        assert script.calls == []
        # Each worker got to each of them although none was called.
        assert all(env.core.infra_machine(key)["metadata"]["finalizers"] for key in keys)
        await env.eventually("provisioned", lambda: any(env.has_machine(key) for key in keys))

    @scenario
    async def test_a_deletion_is_called_before_machines_that_wait(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        await env.stop()
        env.start(hook_rate=0.5, hook_burst=1, sync_period=0)
        script, deletions = normal(PROVISIONED), delete(Deleted())
        cluster = await env.running_cluster()
        keys = [env.core.add_machine(cluster, f"m{number}") for number in range(10)]
        last = keys[-1]
        await env.eventually(
            "known", lambda: env.core.infra_machine(last)["metadata"].get("finalizers")
        )
        await env.quiet()
        calls = len(script.calls)
        env.api.remove(env.machine_kind.resource.kind, last)
        await env.eventually("deleted", lambda: env.is_gone(env.machine_kind, last))
        assert len(deletions.calls) == 1
        assert len(script.calls) - calls < 3

    @scenario
    async def test_rate_limited_pauses_all_machines_of_the_identity(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        script = normal(RateLimitedError("10 requests a second", retry_after=20), PROVISIONED)
        deletions = delete(Deleted())
        first = await add_machine(env)
        await env.eventually(
            "reported", lambda: ready_condition(env, first) == ("False", "RateLimited")
        )
        began = _now()
        cluster = env.core.add_cluster("other")
        await env.quiet()
        for number in range(10):
            labels = {"metadata": {"labels": {"example.com/event": str(number)}}}
            env.api.change(env.machine_kind.resource.kind, first, labels)
            await env.quiet()
        assert len(script.calls) == 1
        assert not env.has_cluster(cluster), "the cluster has the same identity"
        env.api.remove(env.machine_kind.resource.kind, first)
        await env.quiet()
        assert deletions.calls == []
        await env.eventually("gone", lambda: env.is_gone(env.machine_kind, first))
        assert _now() - began >= 19
        await env.eventually("provisioned", lambda: env.has_cluster(cluster))

    @scenario
    async def test_a_pause_is_capped_and_counted(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Clouds answer with a Retry-After of a day."""
        normal(RateLimitedError("quota", retry_after=86400), PROVISIONED)
        key = await add_machine(env)
        await env.eventually(
            "reported", lambda: ready_condition(env, key) == ("False", "RateLimited")
        )
        began = _now()
        shown = env.metrics.render().decode()
        assert 'identities_paused{cause="rate-limit"} 1.0' in shown
        assert 'identity_pauses_total{cause="rate-limit"} 1.0' in shown
        await asyncio.sleep(250)
        assert not env.has_machine(key)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        assert _now() - began >= 299


class TestRetryAfter(ScriptedMachines):
    """The delay that an error demands is a minimum."""

    @scenario
    async def test_an_object_created_again_does_not_inherit_it(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(ReconcileError("QuotaExceeded", retry_after=200), PROVISIONED)
        key = await add_machine(env)
        await env.eventually(
            "reported", lambda: ready_condition(env, key) == ("False", "QuotaExceeded")
        )
        began = _now()
        # No worker sees in between that it is gone.
        kind, again = env.machine_kind.resource.kind, copy_object(env.core.infra_machine(key))
        env.api.change(kind, key, {"metadata": {"finalizers": None}})
        env.api.remove(kind, key)
        for field in ("uid", "resourceVersion", "finalizers", "annotations"):
            again["metadata"].pop(field, None)
        del again["status"]
        env.api.add(again)
        await env.eventually("called", lambda: len(script.calls) == 2)
        assert _now() - began < 100

    @scenario
    async def test_no_event_shortens_retry_after(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(ReconcileError("QuotaExceeded", retry_after=20), PROVISIONED)
        key = await add_machine(env)
        await env.eventually(
            "reported", lambda: ready_condition(env, key) == ("False", "QuotaExceeded")
        )
        began = _now()
        for number in range(10):
            labels = {"metadata": {"labels": {"example.com/event": str(number)}}}
            env.api.change(env.machine_kind.resource.kind, key, labels)
            await env.quiet()
        assert len(script.calls) == 1
        await env.eventually("provisioned", lambda: env.has_machine(key))
        assert _now() - began >= 19

    @scenario
    async def test_a_deletion_is_another_call(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        normal(ReconcileError("QuotaExceeded", retry_after=10000))
        delete(Deleted())
        key = await add_machine(env)
        await env.eventually(
            "reported", lambda: ready_condition(env, key) == ("False", "QuotaExceeded")
        )
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("gone", lambda: env.is_gone(env.machine_kind, key))


class TestConcurrency(ScriptedMachines):
    """How many reconciles of a kind run at the same time."""

    @scenario
    async def test_each_kind_has_its_own_limit(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Proves: MG-05."""
        await env.stop()
        env.start(concurrency=1, kind_concurrency={"AcmeMachine": 4, "AcmeMachin": 2})
        running: list[int] = [0]
        most: list[int] = []

        async def call(machine: Any) -> Any:
            running[0] += 1
            most.append(running[0])
            await asyncio.sleep(1)
            running[0] -= 1
            return PROVISIONED

        normal(call)
        cluster = await env.running_cluster()
        keys = [env.core.add_machine(cluster, f"m{number}") for number in range(12)]
        await env.eventually("provisioned", lambda: all(env.has_machine(key) for key in keys))
        assert max(most) == 4
        assert "--concurrency names unknown kinds" in caplog.messages


def test_a_pause_has_a_length() -> None:
    for seconds in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="retry_after is"):
            RateLimitedError(retry_after=seconds)
