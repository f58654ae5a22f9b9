"""Control planes whose manager crashes between any two requests, or has outdated caches."""

from __future__ import annotations

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.controlplane.environment import (
    ControlPlaneEnvironment,
)


class TestControlPlaneCrashes(ControlPlaneConformance):
    """Control planes whose manager crashes between any two requests, or has outdated caches."""

    @pytest.mark.parametrize("crash_after", range(18))
    @scenario
    async def test_a_crash_between_any_two_requests_creates_nothing_twice(
        self, env: ControlPlaneEnvironment, crash_after: int
    ) -> None:
        """A manager may crash after any write: no object is created twice or left over.

        Proves: CP-19, SM-09.
        """
        writes = 0

        def crash(verb: str, kind: str, body: JSON) -> None:
            nonlocal writes
            writes += 1
            if writes > crash_after:
                raise create_api_error(503, "ServiceUnavailable", "crash")

        env.api.fault = crash
        env.add_control_plane(1)
        await env.eventually("the crash", lambda: writes > crash_after)
        await env.kill()
        env.api.fault = None
        env.start()
        await env.settled(1)
        _check_nothing_is_left_over(env)

    @pytest.mark.parametrize("crash_after", range(8))
    @scenario
    async def test_a_crash_while_scaling_down_removes_one_machine_only(
        self, env: ControlPlaneEnvironment, crash_after: int
    ) -> None:
        """A manager that crashes while it scales down deletes no further Machine after its restart.

        Proves: SM-09.
        """
        await env.running(3)
        writes = 0

        def crash(verb: str, kind: str, body: JSON) -> None:
            nonlocal writes
            writes += 1
            if writes > crash_after:
                raise create_api_error(503, "ServiceUnavailable", "crash")

        env.api.fault = crash
        env.change(replicas=2)
        await env.eventually("the crash", lambda: writes > crash_after or len(env.names()) == 2)
        await env.kill()
        env.api.fault = None
        env.start()
        await env.settled(2)
        removed = [kind for verb, kind, _ in env.api.requests if verb == "delete"]
        assert removed.count("Machine") <= 2, "asked twice at most, for the same one"

    @scenario
    async def test_a_machine_begun_before_a_change_is_not_finished(
        self, env: ControlPlaneEnvironment
    ) -> None:
        env.api.fault = _refuse_machines
        env.add_control_plane(1)
        await env.eventually("it was begun", lambda: env.api.all(env.kind.bootstrap_kind))
        (begun,) = env.api.all("FakeMachine")
        env.change(version="v1.35.0")
        env.api.fault = None
        await env.settled(1)
        assert begun["metadata"]["name"] not in env.names()
        _check_nothing_is_left_over(env)


def _refuse_machines(verb: str, kind: str, body: JSON) -> None:
    if (verb, kind) == ("create", "Machine"):
        raise create_api_error(503, "ServiceUnavailable", "not now")


def _check_nothing_is_left_over(env: ControlPlaneEnvironment) -> None:
    names = env.names()
    for kind in ("FakeMachine", env.kind.bootstrap_kind):
        assert sorted(each["metadata"]["name"] for each in env.api.all(kind)) == names
    assert env.annotations.pending_machine not in env.obj()["metadata"]["annotations"]
