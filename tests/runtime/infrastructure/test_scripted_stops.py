"""How the manager stops while a reconciler runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from capsmith_runtime import manager
from capsmith_runtime.infrastructure import InfraMachineState
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.manager import Manager
from capsmith_runtime.options import Options
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
