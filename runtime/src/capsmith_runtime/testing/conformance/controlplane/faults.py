"""Control planes during faults: crashes, broken Machines, moves, other owners' Machines."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.controlplane.environment import (
    GROUP,
    NAMESPACE,
    ControlPlaneEnvironment,
)
from capsmith_runtime.testing.controlplane.fake_machines import find_node_name
from capsmith_runtime.testing.fake_api import WriteLimit


class TestControlPlaneFaults(ControlPlaneConformance):
    """Control planes during faults: broken Machines, moves, other owners' Machines."""

    @scenario
    async def test_a_broken_machine_is_replaced(self, env: ControlPlaneEnvironment) -> None:
        """A Machine that fails its health check is replaced; the new Machine names the old one.

        Proves: CP-31.
        """
        await env.running(3)
        broken = env.names()[0]
        for condition_type in ("HealthCheckSucceeded", "OwnerRemediated"):
            env.machines.condition(broken, condition_type, "False")
        await env.eventually("it is gone", lambda: broken not in env.names())
        await env.settled(3)
        note = env.annotations.remediation_for
        made = [m for m in env.api.all("Machine") if note in m["metadata"]["annotations"]]
        assert [broken in m["metadata"]["annotations"][note] for m in made] == [True]
        assert env.annotations.remediation_in_progress not in env.obj()["metadata"]["annotations"]

    @scenario
    async def test_a_machine_that_never_joins_is_replaced(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """A broken Machine is replaced even if it has never had a Node.

        Hooks must not fail then: ``node_name`` of the Machine is None.

        Proves: CP-31.
        """
        await env.running(3)
        before = set(env.names())
        env.machines.hold = True
        env.change(replicas=4)
        await env.eventually("the fourth is made", lambda: len(env.names()) == 4)
        (broken,) = set(env.names()) - before
        for condition_type in ("HealthCheckSucceeded", "OwnerRemediated"):
            env.machines.condition(broken, condition_type, "False")
        await env.eventually("it is gone", lambda: broken not in env.names())
        env.machines.hold = False
        await env.settled(4)

    @scenario
    async def test_a_machine_is_replaced_on_request(self, env: ControlPlaneEnvironment) -> None:
        """A Machine with the annotation ``remediate-machine`` is replaced.

        Proves: CP-31.
        """
        await env.running(3)
        broken = env.names()[0]
        note = {"metadata": {"annotations": {f"{GROUP}/remediate-machine": ""}}}
        env.api.change("Machine", NamespacedName(NAMESPACE, broken), note)
        await env.eventually("it is gone", lambda: broken not in env.names())
        await env.settled(3)

    @scenario
    async def test_a_control_plane_waits_for_its_api_server(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """A control plane is not initialized before its API server responds.

        Core and other providers connect to the cluster from then on.

        Proves: CP-02.
        """
        env.is_unreachable = True
        env.add_control_plane(1)
        await env.eventually("a Machine exists", env.names)
        await env.quiet()
        assert not env.initialized()
        env.is_unreachable = False
        await env.settled(1)
        assert env.initialized()

    @scenario
    async def test_a_machine_whose_node_is_gone_is_replaced(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """A broken Machine is replaced even if its Node no longer exists.

        A cloud controller deletes the Node of a server that is gone: hooks that read Nodes must
        not fail then, because nothing is scaled or deleted until they succeed.

        Proves: CP-31.
        """
        await env.running(3)
        broken = env.names()[0]
        env.workload.remove("Node", NamespacedName("", find_node_name(broken)))
        for condition_type in ("HealthCheckSucceeded", "OwnerRemediated"):
            env.machines.condition(broken, condition_type, "False")
        await env.eventually("it is gone", lambda: broken not in env.names())
        await env.settled(3)

    @scenario
    async def test_the_only_machine_is_not_replaced(self, env: ControlPlaneEnvironment) -> None:
        """An unhealthy Machine is kept if it is the only one, and OwnerRemediated reports why.

        The condition is removed once the Machine is healthy again.

        Proves: CP-31.
        """
        await env.running(1)
        (name,) = env.names()
        for condition_type in ("HealthCheckSucceeded", "OwnerRemediated"):
            env.machines.condition(name, condition_type, "False", "WaitingForRemediation")
        await env.eventually(
            "it says why",
            lambda: "only Machine" in str(_condition(env, name, "OwnerRemediated")),
        )
        await env.quiet()
        assert env.names() == [name]
        env.change(machineTemplate=env.from_template("t9"))
        await env.eventually(
            "it waits",
            lambda: "t9" in str(_condition(env, name, "UpToDate"))
            and ("t9 does not exist" in str(env.status()) or not env.has_conditions(env.obj())),
        )
        await env.quiet()
        assert _condition(env, name, "OwnerRemediated") is not None
        env.machines.condition(name, "HealthCheckSucceeded", "True")
        await env.eventually(
            "it is well again", lambda: _condition(env, name, "OwnerRemediated") is None
        )

    @scenario
    async def test_a_moved_control_plane_is_reconciled(self, env: ControlPlaneEnvironment) -> None:
        """After a move, which drops the status, a control plane keeps its Machines.

        It reports again that it is initialized.

        Proves: ST-11, MV-08.
        """
        await env.running(3)
        before = env.names()
        await env.kill()
        _move(env)
        assert not env.initialized()
        env.start()
        await env.settled(3)
        assert env.initialized()
        assert env.names() == before


def _machine(env: ControlPlaneEnvironment, name: str) -> JSON:
    return env.api.find("Machine", NamespacedName(NAMESPACE, name)) or {}


def _condition(env: ControlPlaneEnvironment, name: str, condition_type: str) -> Any:
    status = _machine(env, name).get("status") or {}
    found = (status.get("v1beta2") or status).get("conditions") or ()
    return next((each for each in found if each["type"] == condition_type), None)


def _move(env: ControlPlaneEnvironment) -> None:
    """Create all objects again as ``clusterctl move`` does: new UIDs, no status (MV-07)."""
    api, uids = env.api, dict[str, str]()
    kinds = [env.kind.resource.kind, "Machine", "FakeMachine", env.kind.bootstrap_kind]
    for kind in kinds:
        for obj in api.all(kind):
            key = NamespacedName(NAMESPACE, obj["metadata"]["name"])
            api.change(kind, key, {"metadata": {"finalizers": None}})
            api.remove(kind, key)
            old = obj["metadata"].pop("uid")
            obj.pop("status", None)
            owners = obj["metadata"]["ownerReferences"]
            moved = [{**each, "uid": uids.get(each["uid"], each["uid"])} for each in owners]
            obj["metadata"]["ownerReferences"] = moved
            uids[old] = api.add(obj)["metadata"]["uid"]


class TestControlPlaneCrashes(ControlPlaneConformance):
    """Control planes whose manager crashes between any two requests, or has outdated caches."""

    @pytest.mark.parametrize("crash_after", range(18))
    @scenario
    async def test_a_crash_between_any_two_requests_creates_nothing_twice(
        self, env: ControlPlaneEnvironment, crash_after: int
    ) -> None:
        """Even if a manager crashes after any write, no object is created twice or left over.

        Proves: CP-19, SM-09.
        """
        crash = WriteLimit(crash_after)
        env.api.fault = crash
        env.add_control_plane(1)
        await env.eventually("the crash", lambda: crash.is_exceeded)
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
        """A manager that crashes while scaling down deletes no further Machine after its restart.

        Proves: SM-09.
        """
        await env.running(3)
        crash = WriteLimit(crash_after)
        env.api.fault = crash
        env.change(replicas=2)
        await env.eventually("the crash", lambda: crash.is_exceeded or len(env.names()) == 2)
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
        env.change_machines()
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
