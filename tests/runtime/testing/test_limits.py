"""The limits of the conformance tests: what they report, and how authors change them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from capsmith_runtime.infrastructure import ReconcileError, Waiting
from capsmith_runtime.testing import limits
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.machine import check_requests
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachines,
    ScriptFactory,
)

PROVIDER = replace(scripted_provider.PROVIDER)
_schema = PROVIDER.manifests.schema("AcmeMachine", "v1alpha1")
_schema["properties"]["status"]["properties"]["phase"] = {"type": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    phase: str | None = field(default=None, metadata={"json": "phase"})


def _slow() -> Any:
    """Return a script that takes 40 seconds, however often it is called."""
    began: list[float] = []

    async def script(machine: Any) -> Any:
        now = asyncio.get_running_loop().time()
        began.append(now)
        return PROVISIONED if now - began[0] >= 40 else Waiting("Creating", requeue_after=40)

    return script


PHASES = [
    *(Waiting("Creating", requeue_after=1, status=Status(phase=str(n))) for n in range(3)),
    PROVISIONED,
]


class TestLimits(ScriptedMachines):
    """A message names the limit that was exceeded, and how to raise it."""

    @pytest.fixture(autouse=True)
    def defaults(self) -> Iterator[None]:
        yield
        limits.set_limits()

    @scenario
    async def test_a_slow_machine(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(_slow())
        limits.set_limits(wait_seconds=20)
        cluster = await env.running_cluster()
        with pytest.raises(AssertionError) as caught:
            await env.running_machine(cluster)
        assert "not within wait_seconds=20: the machine is provisioned" in str(caught.value)
        assert "set_limits(wait_seconds=" in str(caught.value)
        assert "tests/conftest.py" in str(caught.value)

    @scenario
    async def test_a_slow_machine_with_more_time(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        limits.set_limits(wait_seconds=50)
        normal(_slow())
        await env.running_machine(await env.running_cluster())

    @scenario
    async def test_a_machine_with_many_requests(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(*PHASES)
        key = await env.running_machine(await env.running_cluster())
        with pytest.raises(AssertionError, match=r"6 requests.*machine_requests=3") as caught:
            check_requests(env, key)
        assert "set_limits(machine_requests=" in str(caught.value)
        limits.set_limits(machine_requests=6)
        check_requests(env, key)

    def test_a_scenario_that_never_ends(self, env: InfrastructureEnvironment) -> None:
        async def forever() -> None:
            while True:
                await env.quiet()

        limits.set_limits(wait_seconds=1)
        with pytest.raises(AssertionError, match=r"10 times wait_seconds=1"):
            env.run(forever)

    @pytest.mark.parametrize("seconds", [20, 1])
    def test_a_failure_shows_the_objects_and_the_log(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, seconds: float
    ) -> None:
        """A failed wait and a scenario that never ends show why nothing happens."""
        normal(ReconcileError("TemplateNotFound", "no template nope"))

        async def forever() -> None:
            key = env.core.add_machine(await env.running_cluster())
            if seconds > 1:
                await env.eventually("it is provisioned", lambda: env.has_machine(key))
            while True:
                await env.quiet()

        limits.set_limits(wait_seconds=seconds)
        with pytest.raises(AssertionError) as caught:
            env.run(forever)
        (note,) = caught.value.__notes__
        assert re.search(r"AcmeMachine m\w*: .*'TemplateNotFound'", note)
        assert re.search(r"WARNING controller.*reconcile failed.*no template nope", note)


def test_limits_are_positive() -> None:
    with pytest.raises(ValueError, match="wait_seconds"):
        limits.set_limits(wait_seconds=0)
    with pytest.raises(ValueError, match="machine_requests"):
        limits.set_limits(machine_requests=0)
