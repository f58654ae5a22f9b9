"""Machines whose servers no longer exist."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from capsmith_runtime.infrastructure import Deleted, InfraMachineState, Terminated
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

PROVIDER = scripted_provider.PROVIDER
UP: InfraMachineState = replace(PROVISIONED, requeue_after=0.05)
TERMINATED = Terminated("ServerNotFound", "acme://1 no longer exists")


class TestTerminatedResults(ScriptedMachines):
    """What the result Terminated becomes in the object."""

    @scenario
    async def test_it_stays_provisioned_with_its_provider_id(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-01, IM-03, IM-10."""
        script = normal(UP, TERMINATED)
        key = await add_machine(env)
        expected = ("False", "ServerNotFound")
        await env.eventually("reported", lambda: ready_condition(env, key) == expected)
        obj = env.core.infra_machine(key)
        assert env.core.provisioned(obj)
        assert obj["spec"]["providerID"] == "acme://1"
        assert obj["status"]["addresses"]
        await env.eventually("an event", lambda: env.api.all("Event"))
        (event,) = env.api.all("Event")
        assert (event["type"], event["reason"]) == ("Warning", "ServerNotFound")

        await env.quiet()
        calls = len(script.calls)
        await asyncio.sleep(100)
        assert len(script.calls) == calls, "it is called without a reason"
        assert script.calls[-1].provider_id == "acme://1"

    @scenario
    async def test_a_server_that_is_found_again_is_ready(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(UP, TERMINATED)
        key = await add_machine(env)
        await env.eventually("reported", lambda: ready_condition(env, key)[0] == "False")
        script.results = [UP]
        await env.restart()
        await env.eventually("ready", lambda: ready_condition(env, key) == ("True", "Ready"))

    @scenario
    async def test_it_can_be_deleted(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        """Proves: IM-25."""
        normal(UP, TERMINATED)
        delete(Deleted())
        key = await add_machine(env)
        await env.eventually("reported", lambda: ready_condition(env, key)[0] == "False")
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("deleted", lambda: env.is_gone(env.machine_kind, key))
