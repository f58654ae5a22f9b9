"""Sessions and rate limits of control planes that consist of Machines, in a running manager."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from capsmith_runtime.controlplane import (
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneScope,
    Credentials,
    RateLimitedError,
    ReconcileError,
    SessionFactory,
    Waiting,
)
from capsmith_runtime.testing import controlplane as testing
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance, Override
from capsmith_runtime.testing.controlplane.environment import (
    CONTROL_PLANE,
    ControlPlaneEnvironment,
    shows,
)
from tests.runtime.controlplane import scripted_provider
from tests.runtime.controlplane.scripted_provider import KeelControlPlaneSpec

PROVIDER = scripted_provider.PROVIDER


class Clients(SessionFactory[list[str]]):
    """Opens one list of calls, or fails."""

    opened: ClassVar[list[list[str]]]
    closed: ClassVar[list[list[str]]]
    errors: ClassVar[list[Exception]]

    def open(self, credentials: Credentials) -> list[str]:
        if self.errors:
            raise self.errors[0]
        self.opened.append([])
        return self.opened[-1]

    def close(self, session: list[str]) -> None:
        self.closed.append(session)


def _health(self: Any, control_plane: ControlPlaneScope[Any]) -> ControlPlaneHealth:
    control_plane.session(Clients).append("health")
    return ControlPlaneHealth()


def _after_add(self: Any, member: ControlPlaneMember[Any]) -> None:
    member.control_plane.session(Clients).append(f"after_add {member.machine.name}")


class Scripted(ControlPlaneConformance):
    """Control planes whose reconciler names a session factory."""

    @pytest.fixture(autouse=True)
    def sessions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("opened", "closed", "errors"):
            monkeypatch.setattr(Clients, name, [], raising=False)
        reconciler = scripted_provider.ScriptedControlPlaneReconciler
        monkeypatch.setattr(reconciler, "session_factory", Clients)


class TestSessions(Scripted):
    """The session of a control plane."""

    @scenario
    async def test_all_hooks_share_one_session(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        override(env, health=_health, after_add=_after_add)
        await env.restart()
        await env.running(3)
        (calls,) = Clients.opened
        assert "health" in calls
        assert {each for each in calls if each != "health"} == {
            f"after_add {name}" for name in env.names()
        }
        await env.stop()
        assert Clients.closed == [calls]

    @scenario
    async def test_a_session_that_cannot_be_opened_is_reported(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        Clients.errors.append(ReconcileError("LoginRefused", "the account is locked"))
        override(env, health=_health)
        await env.restart()
        env.add_control_plane(3)
        await env.eventually("reported", lambda: "LoginRefused" in str(env.status()))
        await env.quiet()
        assert len(env.names()) == 1
        Clients.errors.clear()
        await env.settled(3)
        assert "LoginRefused" not in str(env.status())

    @scenario
    async def test_a_reconciler_without_hooks_opens_no_session(
        self, env: ControlPlaneEnvironment
    ) -> None:
        Clients.errors.append(RuntimeError("it must not be called"))
        await env.restart()
        await env.running(3)
        assert Clients.opened == []


class TestRates(Scripted):
    """How often hooks are called."""

    @scenario
    async def test_hooks_keep_the_rate_and_all_of_them_run(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        times: list[float] = []
        waited: set[str] = set()

        def health(self: Any, control_plane: ControlPlaneScope[Any]) -> ControlPlaneHealth:
            times.append(loop.time())
            return ControlPlaneHealth()

        def after_add(self: Any, member: ControlPlaneMember[Any]) -> Waiting | None:
            times.append(loop.time())
            if member.machine.name in waited:
                return None
            waited.add(member.machine.name)
            return Waiting("Joining", requeue_after=0.1)

        loop = asyncio.get_running_loop()
        await env.stop()
        override(env, health=health, after_add=after_add)
        env.start(hook_rate=1.0, hook_burst=1, sync_period=0)
        env.add_control_plane(3)
        await env.up_to_date(1)
        await env.up_to_date(3)
        assert len(waited) == 3
        assert times[-1] - times[0] >= (len(times) - 1) / 1.0 - 0.5

    @scenario
    async def test_rate_limited_pauses_all_hooks_but_not_the_status(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        answers: list[Exception | None] = [None]
        calls: list[float] = []

        def health(self: Any, control_plane: ControlPlaneScope[Any]) -> ControlPlaneHealth:
            calls.append(loop.time())
            if answers[0] is not None:
                raise answers[0]
            return ControlPlaneHealth()

        loop = asyncio.get_running_loop()
        override(env, health=health)
        await env.restart()
        await env.running(3)
        answers[0] = RateLimitedError("10 requests a second", retry_after=20)
        began, before = loop.time(), len(calls)
        env.change(replicas=1)
        await env.eventually("reported", lambda: "RateLimited" in str(env.status()))
        name = env.names()[0]
        env.machines.condition(name, "Ready", "False")
        await env.eventually("shown", lambda: shows(env.obj(), "MachinesReady", "False"))
        await env.quiet()
        assert len(calls) == before + 1
        assert "RateLimited" in str(env.status()), "the error is reported until the next call"
        assert len(env.names()) == 3
        answers[0] = None
        env.machines.condition(name, "Ready", "True")
        await env.settled(1)
        assert loop.time() - began >= 19
        assert "RateLimited" not in str(env.status())

    @scenario
    async def test_no_event_shortens_retry_after_and_other_hooks_are_called(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        failing: list[float] = []
        loop = asyncio.get_running_loop()

        def before_remove(self: Any, member: ControlPlaneMember[Any]) -> None:
            failing.append(loop.time())
            if len(failing) == 1:
                raise ReconcileError("EtcdBusy", "no leader", retry_after=15)

        override(env, before_remove=before_remove)
        await env.restart()
        await env.running(3)
        env.change(replicas=2)
        await env.eventually("reported", lambda: "EtcdBusy" in str(env.status()))
        for number in range(5):
            labels = {"metadata": {"labels": {"example.com/event": str(number)}}}
            env.api.change(env.kind.resource.kind, CONTROL_PLANE, labels)
            await env.quiet()
        assert len(failing) == 1
        await env.eventually("called again", lambda: len(failing) == 2)
        assert failing[1] - failing[0] >= 15


def test_a_unit_test_passes_a_double() -> None:
    double = ["double"]
    spec = KeelControlPlaneSpec()

    scope = testing.control_plane(spec, session=double)
    member = testing.control_plane_member(spec, session=double)

    assert scope.session(Clients) is double
    assert member.control_plane.session(Clients) is double
