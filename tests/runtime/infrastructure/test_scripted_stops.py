"""How the manager stops while a reconciler runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from capsmith_runtime import manager
from capsmith_runtime.infrastructure import InfraMachineState
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.manager import Manager
from capsmith_runtime.options import Options
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import keep_process
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
)

PROVIDER = scripted_provider.PROVIDER


class TestManagerStop(ScriptedMachines):
    """Running reconciles end before the process does, or before another one leads."""

    @scenario
    async def test_a_new_version_of_core_lets_running_reconciles_end(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        script = normal(_slow(1.0))
        await env.stop()
        monkeypatch.setattr(manager, "CORE_CHECK_SECONDS", 0.1)
        options = Options(own_namespace=env.component.namespace, diagnostics_address="127.0.0.1:0")
        running = _start(env, options, asyncio.Event())
        key = await add_machine(env)
        await env.eventually("called", lambda: script.calls)
        env.api.core_version = "v1beta1"
        with pytest.raises(manager.CoreVersionChangedError):
            await running
        assert env.core.infra_machine(key)["spec"]["providerID"] == "acme://1"

    @pytest.mark.parametrize(("seconds", "is_held"), [(0.0, False), (5.0, True)])
    @scenario
    async def test_no_other_manager_leads_while_a_reconciler_runs(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        seconds: float,
        is_held: bool,
    ) -> None:
        script = normal(_slow(seconds))
        await env.stop()
        options = Options(
            own_namespace=env.component.namespace,
            lease_namespace=env.component.namespace,
            diagnostics_address="127.0.0.1:0",
            leader_elect=True,
            graceful_shutdown_timeout=0.2 if is_held else 60.0,
        )
        stop = asyncio.Event()
        running = _start(env, options, stop)
        await add_machine(env)
        await env.eventually("called", lambda: script.calls)
        stop.set()
        await running
        (lease,) = env.api.all("Lease")
        assert bool(lease["spec"]["holderIdentity"]) == is_held

    @pytest.mark.parametrize("leads", [True, False])
    @scenario
    async def test_another_manager_leads_while_this_one_still_serves_webhooks(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, leads: bool
    ) -> None:
        """A manager that stops is not ready, and serves until its clients are redirected."""
        script = normal(PROVISIONED)
        if leads:
            await env.stop()
        served = Served()
        component = replace(env.component, groups=(*env.component.groups, served.group))
        options = replace(env.options(), leader_elect=leads, lease_namespace="acme-system")
        made = Manager(component, options, env.api, Metrics(), keep_process)
        stop = asyncio.Event()
        running = asyncio.create_task(made.run(stop))
        await env.eventually("ready", lambda: all(check() for check in made._checks.values()))
        if leads:
            await add_machine(env)
            await env.eventually("called", lambda: script.calls)
        stop.set()
        await served.is_draining.wait()
        failed = {name for name, check in made._checks.items() if not check()}
        assert failed == {"shutdown", "webhook"}
        if leads:
            await env.eventually("released", lambda: not _holder(env))
        assert not running.done()
        served.is_drained.set()
        await running


class Served(ControllerGroup):
    """A group whose clients need as long as the test says to find another manager."""

    def __init__(self) -> None:
        self.is_draining, self.is_drained = asyncio.Event(), asyncio.Event()

    def group(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        return self

    async def drain(self) -> None:
        self.is_draining.set()
        await self.is_drained.wait()


def _holder(env: InfrastructureEnvironment) -> str:
    (lease,) = env.api.all("Lease")
    return str(lease["spec"]["holderIdentity"])


def _start(
    env: InfrastructureEnvironment, options: Options, stop: asyncio.Event
) -> asyncio.Task[None]:
    made = Manager(env.component, options, env.api, Metrics(), keep_process)
    return asyncio.create_task(made.run(stop))


def _slow(seconds: float) -> Callable[[object], InfraMachineState]:
    def reconcile(machine: object) -> InfraMachineState:
        time.sleep(seconds)
        return PROVISIONED

    return reconcile
