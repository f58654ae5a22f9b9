"""What a reconcile did, in the log at the default level."""

from __future__ import annotations

import logging

import pytest

from capsmith_runtime.infrastructure import Deleted, Waiting
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
)

PROVIDER = scripted_provider.PROVIDER


class TestReconcileLog(ScriptedMachines):
    """One line for each change, and none for a reconcile that changes nothing."""

    @scenario
    async def test_the_life_of_a_machine(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        delete: ScriptFactory,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        starting = Waiting("Starting", "the server starts", requeue_after=0.3)
        normal(starting, starting, starting, PROVISIONED)
        stopping = Waiting("Stopping", "the server stops", requeue_after=0.3)
        delete(stopping, stopping, stopping, Deleted())
        with caplog.at_level(logging.INFO):
            key = await add_machine(env)
            await env.eventually("provisioned", lambda: env.has_machine(key))
            await env.quiet()
            env.api.remove(env.machine_kind.resource.kind, key)
            await env.eventually("gone", lambda: env.is_gone(env.machine_kind, key))
            await env.quiet()
        assert _lines(caplog, str(key)) == [
            "new object",
            "waiting Starting",
            "provisioned",
            "waiting Stopping",
            "deleted",
        ]


def _lines(caplog: pytest.LogCaptureFixture, key: str) -> list[str]:
    values = [(record.message, record.__dict__["values"]) for record in caplog.records]
    return [
        " ".join([message, str(each.get("reason", ""))]).strip()
        for message, each in values
        if each.get("kind") == "AcmeMachine" and each.get("object") == key
    ]
