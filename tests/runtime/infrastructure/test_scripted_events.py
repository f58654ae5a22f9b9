"""Events that reconcilers record."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.infrastructure import Events, InfraMachineScope
from capsmith_runtime.testing import infrastructure as testing
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachineReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
)

PROVIDER = scripted_provider.PROVIDER


def _record(machine: Any) -> Any:
    machine.events.normal("ServerCreated", "created server 1")
    machine.events.warning("DiskSlow", "the disk is slow")
    return PROVISIONED


async def _record_async(self: object, machine: Any) -> Any:
    return _record(machine)


class TestAuthorEvents(ScriptedMachines):
    """Events through the scope, from threads and from the event loop."""

    @pytest.mark.parametrize("asynchronous", [False, True])
    @scenario
    async def test_events_reach_the_api_server(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
        asynchronous: bool,
    ) -> None:
        normal(_record)
        if asynchronous:
            monkeypatch.setattr(ScriptedMachineReconciler, "reconcile_normal", _record_async)
        key = await add_machine(env)
        await env.eventually("both", lambda: len(env.api.all("Event")) == 2)
        events = {event["reason"]: event for event in env.api.all("Event")}
        assert {reason: event["type"] for reason, event in events.items()} == {
            "ServerCreated": "Normal",
            "DiskSlow": "Warning",
        }
        assert events["ServerCreated"]["note"] == "created server 1"
        assert events["ServerCreated"]["regarding"]["name"] == key.name

    @scenario
    async def test_repeated_events_are_sent_once(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(_record)
        await add_machine(env)
        await env.eventually("called", lambda: script.calls)
        await env.restart()
        await env.quiet()
        reasons = [event["reason"] for event in env.api.all("Event")]
        assert reasons.count("ServerCreated") <= 2, "one for each process"


def test_unit_tests_see_the_events() -> None:
    machine: InfraMachineScope[Any] = testing.infra_machine({})
    _record(machine)

    assert [tuple(event) for event in machine.events.recorded] == [
        ("Normal", "ServerCreated", "created server 1"),
        ("Warning", "DiskSlow", "the disk is slow"),
    ]


def test_a_reason_is_one_word() -> None:
    with pytest.raises(ValueError, match="CamelCase"):
        Events().normal("two words", "text")
