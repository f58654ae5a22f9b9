"""The hooks of a control plane's reconciler, and the effect of their results."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capsmith_runtime.contract.model import Condition
from capsmith_runtime.controlplane.api import (
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneScope,
)
from capsmith_runtime.errors import TerminalError
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance, Override
from capsmith_runtime.testing.controlplane.environment import (
    CONTROL_PLANE,
    NAMESPACE,
    ControlPlaneEnvironment,
    condition,
    shows,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")
WAITING = Waiting("InTheTest", "the test holds it", 0.05)
FOREIGN = {
    "type": "Foreign",
    "status": "True",
    "reason": "Inspected",
    "message": "",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
}


def _health(*types: str) -> ControlPlaneHealth:
    conditions = [Condition(type=name, status=True, reason="Reported") for name in types]
    return ControlPlaneHealth(conditions=conditions)


@run_with("complete", "control-plane", "two-contracts")
class TestControlPlaneHooks(ControlPlaneConformance):
    """The hooks of a control plane's reconciler, and the effect of their results."""

    @scenario
    async def test_a_member_is_removed_when_before_remove_completes(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """Proves: SM-05."""
        asked: list[str] = []
        held = True

        def before_remove(self: Any, member: ControlPlaneMember[Any]) -> Waiting | None:
            asked.append(member.machine.name)
            return WAITING if held else None

        override(env, before_remove=before_remove)
        await env.restart()
        await env.running(3)
        env.change(replicas=2)
        await env.eventually("it is asked again and again", lambda: len(asked) > 3)
        assert len(env.names()) == 3
        assert len(set(asked)) == 1
        held = False
        await env.settled(2)
        assert asked[0] not in env.names()

    @scenario
    async def test_before_remove_runs_for_a_machine_that_a_user_deletes(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """Proves: SM-05."""
        asked: list[str] = []

        def before_remove(self: Any, member: ControlPlaneMember[Any]) -> Waiting | None:
            asked.append(member.machine.name)
            return None

        override(env, before_remove=before_remove)
        await env.restart()
        await env.running(3)
        gone = env.names()[1]
        env.api.remove("Machine", NamespacedName(NAMESPACE, gone))
        await env.eventually("it is gone", lambda: gone not in env.names())
        await env.settled(3)
        assert asked == [gone]

    @scenario
    async def test_before_remove_runs_once_core_has_drained_the_node(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """The hook waits until core has reached the pre-terminate hooks.

        Proves: SM-05.
        """
        asked: list[str] = []

        def before_remove(self: Any, member: ControlPlaneMember[Any]) -> Waiting | None:
            asked.append(member.machine.name)
            return None

        override(env, before_remove=before_remove)
        await env.restart()
        await env.running(3)
        gone = env.names()[1]
        env.machines.draining = True
        key = NamespacedName(NAMESPACE, gone)
        env.api.remove("Machine", key)
        await env.eventually(
            "its Node is being drained",
            lambda: shows(env.api.find("Machine", key) or {}, "Deleting", "True"),
        )
        await env.quiet()
        assert asked == []
        env.machines.draining = False
        await env.eventually("it is gone", lambda: gone not in env.names())
        assert asked == [gone]

    @scenario
    async def test_the_next_member_waits_for_the_author(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        asked: list[str] = []
        held = True

        def after_add(self: Any, member: ControlPlaneMember[Any]) -> Waiting | None:
            asked.append(member.machine.name)
            return WAITING if held else None

        override(env, after_add=after_add)
        await env.restart()
        env.add_control_plane(3)
        await env.eventually("it is asked again and again", lambda: len(asked) > 3)
        assert env.names() == [asked[0]]
        held = False
        await env.settled(3)
        assert set(asked) == set(env.names())
        done = len(asked)
        await env.restart()
        await env.quiet()
        assert len(asked) == done, "no member is new now"

    @scenario
    async def test_after_add_runs_once_the_machine_has_a_node(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        nodes: list[str | None] = []

        def after_add(self: Any, member: ControlPlaneMember[Any]) -> None:
            nodes.append(member.machine.node_name)

        override(env, after_add=after_add)
        await env.restart()
        env.machines.hold = True
        env.add_control_plane(1)
        await env.eventually("the first is made", env.names)
        await env.quiet()
        assert nodes == []
        env.machines.hold = False
        await env.settled(1)
        assert nodes == [f"{env.names()[0]}-node"]

    @scenario
    async def test_the_only_machine_with_a_node_is_kept_before_after_add_completes(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """After a move, which drops the status, it may hold all data.

        Proves: CP-31.
        """
        up = True

        def after_add(self: Any, member: ControlPlaneMember[Any]) -> Waiting:
            return WAITING

        def is_initialized(self: Any, control_plane: ControlPlaneScope[Any]) -> bool:
            return up

        def machine() -> JSON:
            return env.api.all("Machine")[0]

        override(env, after_add=after_add, is_initialized=is_initialized)
        await env.restart()
        env.add_control_plane(1)
        await env.eventually("it is made", env.names)
        names = env.names()
        await env.eventually("it has a Node", lambda: "nodeRef" in machine().get("status", {}))
        await env.stop()
        up = False
        env.api.change(env.kind.resource.kind, CONTROL_PLANE, {"status": None})
        for condition_type in ("HealthCheckSucceeded", "OwnerRemediated"):
            env.machines.condition(names[0], condition_type, "False", "WaitingForRemediation")
        env.start()
        await env.eventually(
            "it says why",
            lambda: "only Machine" in str(condition(machine(), "OwnerRemediated")),
        )
        assert env.names() == names

    @pytest.mark.parametrize("answer", [WAITING, RuntimeError("boom")], ids=["waits", "raises"])
    @scenario
    async def test_a_broken_member_is_replaced_before_after_add_completes(
        self, env: ControlPlaneEnvironment, override: Override, answer: Waiting | Exception
    ) -> None:
        """Only other Machines wait for the hook of a Machine that must be replaced.

        Proves: CP-31.
        """
        broken = ""

        def after_add(self: Any, member: ControlPlaneMember[Any]) -> Waiting | None:
            nonlocal broken
            if len(member.control_plane.machines) == 3:
                broken = broken or member.machine.name
            if member.machine.name != broken:
                return None
            if isinstance(answer, Exception):
                raise answer
            return answer

        override(env, after_add=after_add)
        await env.restart()
        env.add_control_plane(3)
        await env.eventually("it waits for the third", lambda: broken)
        await env.eventually("it has a Node", lambda: broken in str(env.status()))
        for condition_type in ("HealthCheckSucceeded", "OwnerRemediated"):
            env.machines.condition(broken, condition_type, "False")
        await env.eventually("it is replaced", lambda: broken not in env.names())
        await env.settled(3)

    @scenario
    async def test_members_that_are_not_well_stop_scaling(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        broken: dict[str, str] = {}

        def health(self: Any, control_plane: ControlPlaneScope[Any]) -> ControlPlaneHealth:
            return ControlPlaneHealth(unhealthy=broken, requeue_after=0.05)

        override(env, health=health)
        await env.restart()
        env.add_control_plane(3)
        await env.up_to_date(3)
        name = env.names()[0]
        broken[name] = "etcd has no leader"
        await env.eventually("it says so", lambda: shows(env.obj(), "Healthy", "False"))
        env.change(replicas=5)
        await env.eventually("it waits", lambda: name in str(condition(env.obj(), "ScalingUp")))
        assert len(env.names()) == 3
        assert shows(env.obj(), "Available", "True"), "two of three are a quorum"
        broken[env.names()[1]] = "too"
        await env.eventually("it says so", lambda: shows(env.obj(), "Available", "False"))
        broken.clear()
        await env.up_to_date(5)

    @scenario
    async def test_a_condition_that_is_no_longer_returned_is_removed(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """Conditions of other writers stay, and so do all during a failure.

        Proves: ST-10.
        """
        answers: list[ControlPlaneHealth | Exception] = [_health("EtcdCompacted", "Backup")]

        def health(self: Any, control_plane: ControlPlaneScope[Any]) -> ControlPlaneHealth:
            if isinstance(answers[-1], Exception):
                raise answers[-1]
            return answers[-1]

        def types() -> set[str]:
            return {each["type"] for each in env.status()["conditions"]}

        override(env, health=health)
        await env.restart()
        await env.running(1)
        before = types()
        assert {"EtcdCompacted", "Backup"} <= before
        conditions = [*env.status()["conditions"], FOREIGN]
        env.api.change(
            env.kind.resource.kind, CONTROL_PLANE, {"status": {"conditions": conditions}}
        )
        answers.append(RuntimeError("boom"))
        await env.restart()
        await env.eventually("it fails", lambda: shows(env.obj(), "Healthy", "Unknown"))
        assert types() == before | {"Foreign"}
        answers.append(_health("Backup"))
        await env.restart()
        await env.eventually("it is removed", lambda: "EtcdCompacted" not in types())
        answers.append(_health())
        await env.restart()
        await env.eventually("it is removed", lambda: "Backup" not in types())
        await env.quiet()
        assert types() == before - {"EtcdCompacted", "Backup"} | {"Foreign"}
        annotations = env.obj()["metadata"]["annotations"]
        assert not [name for name in annotations if name.endswith("/conditions")]

    @scenario
    async def test_the_author_reports_when_the_api_server_is_up(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """Proves: CP-02, CP-03."""
        up = False

        async def is_initialized(
            self: Any, control_plane: ControlPlaneScope[Any]
        ) -> bool | Waiting:
            return up or WAITING

        override(env, is_initialized=is_initialized)
        await env.restart()
        env.add_control_plane(1)
        await env.eventually(
            "it says why", lambda: "the test holds it" in str(condition(env.obj(), "Available"))
        )
        assert not env.initialized()
        up = True
        await env.settled(1)
        up = False
        await env.restart()
        await env.quiet()
        assert env.initialized(), "initialized stays initialized"

    @pytest.mark.parametrize(
        "answer", [RuntimeError("boom"), "no health"], ids=["raises", "nonsense"]
    )
    @scenario
    async def test_code_that_fails_is_told_and_asked_again(
        self, env: ControlPlaneEnvironment, override: Override, answer: object
    ) -> None:
        broken = True

        def health(self: Any, control_plane: ControlPlaneScope[Any]) -> Any:
            if not broken:
                return ControlPlaneHealth()
            if isinstance(answer, Exception):
                raise answer
            return answer

        override(env, health=health)
        await env.restart()
        env.add_control_plane(1)
        await env.eventually("it says so", lambda: shows(env.obj(), "Healthy", "Unknown"))
        assert env.api.all("Event")
        broken = False
        await env.settled(1)
        await env.eventually("it is well", lambda: shows(env.obj(), "Healthy", "True"))

    @scenario
    async def test_a_terminal_error_is_not_retried(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """Proves: CP-27."""
        calls, broken = 0, True

        def health(self: Any, control_plane: ControlPlaneScope[Any]) -> ControlPlaneHealth:
            nonlocal calls
            calls += 1
            if broken:
                raise TerminalError("LicenseExpired", "renew the license")
            return ControlPlaneHealth()

        override(env, health=health)
        await env.restart()
        env.add_control_plane(1)
        await env.eventually(
            "it is reported",
            lambda: condition(env.obj(), "Healthy").get("reason") == "LicenseExpired",
        )
        await env.quiet()
        before, failure = calls, env.status().get("failureReason")
        await asyncio.sleep(200)
        assert calls == before, "it is called without a reason"
        assert failure == ("LicenseExpired" if env.contract == "v1beta1" else None)

        broken = False
        env.change(replicas=3)
        await env.settled(3)
        assert shows(env.obj(), "Healthy", "True")
        assert not {"failureReason", "failureMessage"} & set(env.status())

    @scenario
    async def test_before_remove_is_not_called_when_the_control_plane_is_deleted(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """Proves: CP-34."""

        def before_remove(self: Any, member: ControlPlaneMember[Any]) -> Waiting | None:
            raise AssertionError("no member is left to hand over to")

        override(env, before_remove=before_remove)
        await env.restart()
        await env.running(3)
        kind = env.kind.resource.kind
        env.api.remove(kind, NamespacedName(NAMESPACE, env.obj()["metadata"]["name"]))
        await env.eventually("all is gone", lambda: not env.api.all(kind) + env.names())
