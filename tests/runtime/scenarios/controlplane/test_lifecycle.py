"""The life of a control plane of Machines."""

from __future__ import annotations

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.conformance.controlplane.lifecycle import _machine_kinds
from capsmith_runtime.testing.controlplane.environment import (
    CLUSTER,
    CONTROL_PLANE,
    NAMESPACE,
    ControlPlaneEnvironment,
    condition,
    shows,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")


@run_with("complete", "control-plane", "two-contracts")
class TestControlPlane(ControlPlaneConformance):
    """The life of a control plane of Machines."""

    @scenario
    async def test_machines_wait_for_the_endpoint(self, env: ControlPlaneEnvironment) -> None:
        """Proves: CP-41."""
        env.api.change("Cluster", CLUSTER, {"spec": {"controlPlaneEndpoint": None}})
        env.add_control_plane(1)
        await env.eventually("it says so", lambda: shows(env.obj(), "Available", "False"))
        await env.quiet()
        assert env.names() == []
        endpoint = {"host": "127.0.0.1", "port": 6443}
        env.api.change("Cluster", CLUSTER, {"spec": {"controlPlaneEndpoint": endpoint}})
        await env.settled(1)

    @scenario
    async def test_names_from_a_template(self, env: ControlPlaneEnvironment) -> None:
        """Proves: CP-19."""
        await env.running(1, machineNaming={"template": "master-{{ .random }}"})
        (name,) = env.names()
        assert name.startswith("master-")
        for kind in _machine_kinds(env):
            assert env.api.find(kind, NamespacedName(NAMESPACE, name)) is not None
        env.change(machineNaming={"template": "node-{{ .random }}"})
        await env.quiet()
        assert env.names() == [name]

    @scenario
    async def test_metadata_and_times_without_a_rollout(self, env: ControlPlaneEnvironment) -> None:
        """Proves: CP-20, CP-32."""
        await env.running(1)
        before = env.names()
        key = NamespacedName(NAMESPACE, before[0])
        for kind in _machine_kinds(env):
            env.api.change(kind, key, {"metadata": {"labels": {"mine": "1"}}})
        metadata = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
        env.change(machineTemplate=env.machine_template(metadata=metadata, **_drain(env)))
        await env.eventually("it has them", lambda: all(_labelled(env, key, "team", "a")))
        await env.quiet()
        machine = env.api.find("Machine", key)
        assert machine is not None
        assert machine["metadata"]["annotations"]["note"] == "b"
        assert _drain_of(machine) in (300, "5m0s")

        env.change(machineTemplate={"metadata": None})
        await env.eventually("they are gone", lambda: not any(_labelled(env, key, "team", "a")))
        await env.quiet()
        assert all(_labelled(env, key, "mine", "1"))
        assert env.names() == before

    @scenario
    async def test_only_outdated_machines_are_reported(self, env: ControlPlaneEnvironment) -> None:
        """The status reports the Machines that are replaced, and no others.

        Proves: CP-32.
        """
        await env.running(3)
        before = env.names()
        assert shows(env.obj(), "MachinesUpToDate", "True")
        assert not shows(env.obj(), "RollingOut", "True")
        env.machines.hold = True
        env.change_machines()
        await env.eventually("the first new one is made", lambda: len(env.names()) == 4)
        await env.quiet()
        message = condition(env.obj(), "MachinesUpToDate")["message"]
        assert [name for name in env.names() if name in message] == before
        env.machines.hold = False
        await env.settled(3)
        assert shows(env.obj(), "MachinesUpToDate", "True")
        assert not shows(env.obj(), "RollingOut", "True")

    @scenario
    async def test_owner_references_have_the_stored_version(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """The garbage collector cannot look up owners in a version that is no longer served.

        Proves: CP-19, CRD-16.
        """
        await env.running(1)
        (name,) = env.names()
        key = NamespacedName(NAMESPACE, name)
        (machine,) = env.api.all("Machine")
        (now,) = machine["metadata"]["ownerReferences"]
        before = {**now, "apiVersion": f"{now['apiVersion'].partition('/')[0]}/v0alpha1"}
        await env.stop()
        env.api.change("Machine", key, {"metadata": {"ownerReferences": [before]}})
        env.start()

        def owners() -> object:
            found = env.api.find("Machine", key)
            assert found is not None
            return found["metadata"]["ownerReferences"]

        await env.eventually("the owner is up to date", lambda: owners() == [now])

    @scenario
    async def test_a_pause_is_respected(self, env: ControlPlaneEnvironment) -> None:
        """Proves: SM-01, ST-08."""
        await env.running(1)
        env.api.change("Cluster", CLUSTER, {"spec": {"paused": True}})
        await env.eventually("it says so", lambda: shows(env.obj(), "Paused", "True"))
        env.change(replicas=3)
        env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
        await env.quiet()
        assert len(env.names()) == 1


def _labelled(
    env: ControlPlaneEnvironment, key: NamespacedName, label: str, value: str
) -> list[bool]:
    found = [env.api.find(kind, key) for kind in ("Machine", *_machine_kinds(env))]
    mine = found[1:] if label == "mine" else found
    return [
        obj is not None and obj["metadata"].get("labels", {}).get(label) == value for obj in mine
    ]


def _drain(env: ControlPlaneEnvironment) -> JSON:
    if env.contract == "v1beta1":
        return {"nodeDrainTimeout": "5m"}
    return {"deletion": {"nodeDrainTimeoutSeconds": 300}}


def _drain_of(machine: JSON) -> object:
    spec = machine["spec"]
    old = spec.get("nodeDrainTimeout")
    return old or (spec.get("deletion") or {}).get("nodeDrainTimeoutSeconds")
