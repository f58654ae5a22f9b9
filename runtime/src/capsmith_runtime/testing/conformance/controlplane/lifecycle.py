"""Lifecycle of a control plane that consists of Machines."""

from __future__ import annotations

import pytest

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.controlplane.environment import (
    CLUSTER,
    CONTROL_PLANE,
    GROUP,
    NAMESPACE,
    ControlPlaneEnvironment,
)
from capsmith_runtime.testing.controlplane.fake_machines import template_of


class TestControlPlane(ControlPlaneConformance):
    """Lifecycle of a control plane that consists of Machines."""

    @scenario
    async def test_a_control_plane_is_created_and_deleted(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """A running control plane reports its Machines; its deletion leaves no object behind.

        Proves: CP-04, CP-05, CP-06, CP-34.
        """
        await env.running(3)
        counters: JSON = {"availableReplicas": 3, "upToDateReplicas": 3}
        if env.contract == "v1beta1":
            counters = {"updatedReplicas": 3, "unavailableReplicas": 0}
        counters |= {"replicas": 3, "readyReplicas": 3, "version": "v1.34.0"}
        # A CRD that exists may lack some of the fields.
        expected = {
            name: value
            for name, value in counters.items()
            if env.has_field(env.obj(), "status", name)
        }
        assert {name: env.status().get(name) for name in expected} == expected
        assert env.initialized()
        assert env.shows(env.obj(), "Available", "True")

        env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
        await env.eventually("all is gone", lambda: not _left(env))

    @scenario
    async def test_machines_are_created_as_core_requires(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Machines meet core's requirements, and are spread evenly over failure domains.

        Proves: CP-19, CRD-09, CP-24.
        """
        await env.running(3)
        for machine in env.api.all("Machine"):
            _check_machine(env, machine)
        domains = sorted(each["spec"]["failureDomain"] for each in env.api.all("Machine"))
        assert domains in (["a", "a", "b"], ["a", "b", "b"])

    @scenario
    async def test_one_machine_at_a_time(self, env: ControlPlaneEnvironment) -> None:
        env.machines.hold = True
        env.add_control_plane(5)
        await env.eventually("the first is made", env.names)
        await env.quiet()
        assert len(env.names()) == 1
        assert not env.initialized()
        env.machines.hold = False
        await env.settled(5)

    @scenario
    async def test_scaling_up_and_down(self, env: ControlPlaneEnvironment) -> None:
        """The number of Machines follows ``replicas``, but the last Machine is never deleted.

        Proves: CP-04.
        """
        await env.running(1)
        for replicas in (3, 5, 1):
            env.change(replicas=replicas)
            await env.settled(replicas)
            assert env.status()["replicas"] == replicas
        before = env.names()
        env.change(replicas=0)
        await env.quiet()
        assert env.names() == before, "the last one stays"

    @scenario
    async def test_the_marked_machine_is_deleted_first(self, env: ControlPlaneEnvironment) -> None:
        """Scaling down deletes the Machine with the annotation ``delete-machine`` first.

        Proves: CP-31.
        """
        await env.running(3)
        marked = env.names()[-1]
        note = {"metadata": {"annotations": {f"{GROUP}/delete-machine": ""}}}
        env.api.change("Machine", NamespacedName(NAMESPACE, marked), note)
        env.change(replicas=2)
        await env.settled(2)
        assert marked not in env.names()

    @scenario
    async def test_an_upgrade_replaces_all(self, env: ControlPlaneEnvironment) -> None:
        """A new version replaces all Machines; the user may leave out the ``v``.

        Proves: CP-08, CP-10.
        """
        if not env.has_version:
            pytest.skip("the CRD has no version: another template replaces the Machines")
        await env.running(3)
        before = set(env.names())
        env.change(version="1.35.0")
        await env.eventually("all are new", lambda: not before & set(env.names()))
        await env.settled(3)
        versions = {each["spec"]["version"] for each in env.api.all("Machine")}
        assert versions == {"v1.35.0"}
        if env.has_field(env.obj(), "status", "version"):
            assert env.status()["version"] == "v1.35.0"

    @scenario
    async def test_another_template_replaces_all(self, env: ControlPlaneEnvironment) -> None:
        """A new infrastructure template replaces all Machines; the Cluster owns both templates.

        Proves: CP-21.
        """
        await env.running(1)
        (before,) = env.names()
        env.api.add(template_of("t2"))
        env.change(machineTemplate=env.from_template("t2"))
        await env.eventually("it is new", lambda: env.names() and before not in env.names())
        await env.settled(1)
        (clone,) = env.api.all("FakeMachine")
        assert clone["spec"] == {"size": "t2"}
        for name in ("t1", "t2"):
            template = env.api.find("FakeMachineTemplate", NamespacedName(NAMESPACE, name))
            assert template is not None
            (owner,) = template["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"]) == ("Cluster", CLUSTER.name)

    @scenario
    async def test_a_rollout_at_a_given_time(self, env: ControlPlaneEnvironment) -> None:
        """Machines that are older than ``rollout.after`` are replaced once that time has come.

        Proves: CP-18.
        """
        await env.running(1)
        if not env.has_field(env.obj(), "spec", "rollout", "after"):
            return
        (before,) = env.names()
        assert len(env.api.all("Machine")) == 1
        env.change(rollout={"after": "2100-01-01T00:00:00Z"})
        await env.quiet()
        assert env.names() == [before]
        past = {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}
        env.api.change("Machine", NamespacedName(NAMESPACE, before), past)
        env.change(rollout={"after": "2021-01-01T00:00:00Z"})
        await env.eventually("it is new", lambda: env.names() and before not in env.names())
        await env.settled(1)

    @scenario
    async def test_a_rollout_without_surge(self, env: ControlPlaneEnvironment) -> None:
        """A rollout without surge never has more Machines than there are replicas."""
        await env.running(3)
        strategy: JSON = {"rollingUpdate": {"maxSurge": 0}}
        place = ("spec", "rollout", "strategy")
        if not env.has_field(env.obj(), *place, "rollingUpdate", "maxSurge"):
            return
        if env.has_field(env.obj(), *place, "type"):
            strategy["type"] = "RollingUpdate"
        env.change(rollout={"strategy": strategy})
        before = set(env.names())
        env.change_machines()
        numbers: set[int] = set()

        def is_replaced() -> bool:
            numbers.add(len(env.names()))
            return not before & set(env.names())

        await env.eventually("all are new", is_replaced)
        await env.settled(3)
        assert numbers == {2, 3}

    @scenario
    async def test_another_reconcile_changes_nothing(self, env: ControlPlaneEnvironment) -> None:
        await env.running(3)
        before = list(env.api.everything())
        for _ in range(3):
            await env.restart()
            await env.quiet()
        assert env.api.everything() == before


def _check_machine(env: ControlPlaneEnvironment, machine: JSON) -> None:
    name, spec = machine["metadata"]["name"], machine["spec"]
    (owner,) = machine["metadata"]["ownerReferences"]
    assert owner["uid"] == env.obj()["metadata"]["uid"]
    assert owner["controller"] is True
    assert spec["clusterName"] == CLUSTER.name
    assert spec.get("version") == ("v1.34.0" if env.has_version else None)
    for reference in (spec["infrastructureRef"], spec["bootstrap"]["configRef"]):
        assert reference["name"] == name
    for kind in ("Machine", *_machine_kinds(env)):
        obj = env.api.find(kind, NamespacedName(NAMESPACE, name))
        assert obj is not None
        labels = obj["metadata"]["labels"]
        assert labels[f"{GROUP}/control-plane"] == ""
        assert labels[f"{GROUP}/cluster-name"] == CLUSTER.name
        assert labels[f"{GROUP}/control-plane-name"] == CONTROL_PLANE.name
    clone = env.api.find("FakeMachine", NamespacedName(NAMESPACE, name))
    assert clone is not None
    assert clone["spec"] == {"size": "t1"}
    assert clone["metadata"]["labels"]["from"] == "template"
    annotations = clone["metadata"]["annotations"]
    assert annotations[f"{GROUP}/cloned-from-name"] == "t1"
    kind = "FakeMachineTemplate.infrastructure.cluster.x-k8s.io"
    assert annotations[f"{GROUP}/cloned-from-groupkind"] == kind


def _machine_kinds(env: ControlPlaneEnvironment) -> tuple[str, str]:
    return "FakeMachine", env.kind.bootstrap_kind


def _left(env: ControlPlaneEnvironment) -> list[str]:
    kinds = (env.kind.resource.kind, "Machine", *_machine_kinds(env))
    return [each["metadata"]["name"] for kind in kinds for each in env.api.all(kind)]
