"""What a remediation does, from its creation by core until core deletes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.remediation.base import RemediationConformance
from capsmith_runtime.testing.remediation.environment import RemediationEnvironment

PAUSED = "cluster.x-k8s.io/paused"


class TestRemediations(RemediationConformance):
    """What a remediation does, from its creation by core until core deletes it."""

    @scenario
    async def test_a_machine_is_remediated_once(self, env: RemediationEnvironment) -> None:
        """A Machine is remediated once, however often the remediation is reconciled.

        Only core deletes the remediation.

        Proves: ER-07, SM-08.
        """
        machine = await env.unhealthy_machine()
        assert env.carried_out() == []
        env.add(machine)
        await env.is_complete(machine)
        await env.quiet()
        assert env.remediation(machine)["metadata"]["finalizers"] == [env.kind.finalizer]

        await env.restart()
        await env.quiet()
        assert env.found(machine) is not None, "only core deletes a remediation"
        assert len(env.carried_out()) == 1

    @scenario
    async def test_an_unchanged_remediation_costs_no_requests(
        self, env: RemediationEnvironment
    ) -> None:
        """Reconciling a complete remediation sends no writes.

        Proves: ST-06.
        """
        machine = await env.unhealthy_machine()
        env.add(machine)
        await env.is_complete(machine)
        await env.quiet()
        kind = env.kind.resource.kind
        before = env.api.written(kind, machine)
        env.change(machine, {"metadata": {"labels": {"example.com/team": "a"}}})
        await env.quiet()
        assert env.api.written(kind, machine) == before

    @scenario
    async def test_a_paused_remediation_is_left_alone(self, env: RemediationEnvironment) -> None:
        """A remediation with the paused annotation neither acts nor ends until it is resumed.

        Proves: SM-01, ST-08.
        """
        machine = await env.unhealthy_machine()
        env.add(machine, annotations={PAUSED: ""})
        paused = ("True", "Paused")
        await env.eventually(
            "it says so", lambda: env.shows(env.remediation(machine), "Paused", *paused)
        )
        await env.quiet()
        assert env.carried_out() == []

        env.change(machine, {"metadata": {"annotations": {PAUSED: None}}})
        await env.is_complete(machine)
        env.change(machine, {"metadata": {"annotations": {PAUSED: ""}}})
        await env.quiet()
        env.delete(machine)
        await env.quiet()
        assert env.found(machine) is not None

        env.change(machine, {"metadata": {"annotations": {PAUSED: None}}})
        await env.is_deleted(machine)
        assert len(env.carried_out()) == 1

    @scenario
    async def test_a_healthy_machine_loses_its_remediation(
        self, env: RemediationEnvironment
    ) -> None:
        """Core deletes the remediation of a Machine that is healthy; a later one remediates again.

        Proves: ER-07, SM-08.
        """
        machine = await env.unhealthy_machine()
        for count in (1, 2):
            env.add(machine)
            await env.is_complete(machine)
            await env.quiet()
            assert len(env.carried_out()) == count
            env.delete(machine)
            await env.is_deleted(machine)
        assert len(env.infrastructure.servers()) == 1, "the machine stays"

    @scenario
    async def test_a_remediation_may_outlive_its_machine(self, env: RemediationEnvironment) -> None:
        """A remediation can be deleted although its Machine and the server no longer exist.

        The garbage collector deletes it after the Machine.

        Proves: SM-08.
        """
        machine = await env.unhealthy_machine()
        env.add(machine)
        await env.is_complete(machine)
        env.api.remove(env.machine_kind.resource.kind, machine)
        await env.eventually("the server is gone", lambda: env.is_gone(env.machine_kind, machine))
        env.api.remove("Machine", machine)
        env.delete(machine)
        await env.is_deleted(machine)

    @scenario
    async def test_a_moved_machine_is_not_remediated_again(
        self, env: RemediationEnvironment
    ) -> None:
        """A move, which drops the status and changes the UID, repeats nothing.

        Proves: SM-09, ST-11.
        """
        machine = await env.unhealthy_machine()
        env.add(machine)
        await env.is_complete(machine)
        await env.quiet()
        await env.stop()
        done, moved = env.carried_out(), env.remediation(machine)
        env.change(machine, {"metadata": {"finalizers": None}})
        env.delete(machine)
        moved.pop("status", None)
        env.api.add(moved)
        env.start()
        await env.is_complete(machine)
        await env.quiet()
        assert env.remediation(machine)["metadata"]["uid"] != moved["metadata"]["uid"]
        assert env.carried_out() == done

    @pytest.mark.parametrize("arrives", [True, False], ids=["after", "before"])
    @scenario
    async def test_a_crash_at_any_write_repeats_nothing(
        self, env: RemediationEnvironment, arrives: bool
    ) -> None:
        """If a manager crashes at any write, the Machine is still remediated once.

        Proves: SM-08, SM-09.
        """
        machine = await env.unhealthy_machine()
        crash = _Crash(env.kind.resource.kind, arrives)
        env.api.fault = crash
        env.add(machine)
        while not await _wait_until_reached(env, crash, lambda: _is_ready(env, machine)):
            await env.restart()
        await env.quiet()
        assert len(env.carried_out()) == 1

        env.delete(machine)
        while not await _wait_until_reached(env, crash, lambda: env.found(machine) is None):
            await env.restart()
        assert len(env.carried_out()) == 1


class _Crash:
    """Stops the manager once at each kind of write, before it arrives or before its response."""

    def __init__(self, kind: str, arrives: bool) -> None:
        self._kind = kind
        self._arrives = arrives
        self.seen: set[tuple[str, ...]] = set()
        self.happened = False

    def __call__(self, verb: str, kind: str, body: JSON) -> None:
        write = (verb, *sorted(body), *sorted(body.get("metadata", {})))
        if kind != self._kind or write in self.seen:
            return
        self.seen.add(write)
        self.happened = True
        if not self._arrives:
            raise create_api_error(500, "InternalError", "the connection was lost")


async def _wait_until_reached(
    env: RemediationEnvironment, crash: _Crash, holds: Callable[[], bool]
) -> bool:
    """Wait for a state, or return False if the manager must be killed first."""
    await env.eventually("the next write, or the end", lambda: crash.happened or holds())
    happened, crash.happened = crash.happened, False
    return not happened


def _is_ready(env: RemediationEnvironment, machine: NamespacedName) -> bool:
    obj = env.remediation(machine)
    if not env.has_conditions(obj):
        return bool(env.carried_out())
    return env.shows(obj, "Ready", "True")
