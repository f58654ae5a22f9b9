"""Machines and Secrets of a control plane that have lost metadata, as after a restored backup."""

from __future__ import annotations

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.live import is_alive
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.conformance.controlplane.faults import _refuse_machines
from capsmith_runtime.testing.controlplane.environment import (
    CLUSTER,
    CONTROL_PLANE,
    GROUP,
    NAMESPACE,
    ControlPlaneEnvironment,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")


@run_with("complete", "control-plane", "two-contracts")
class TestLostOwners(ControlPlaneConformance):
    """Machines of a control plane that have lost their owner references."""

    @scenario
    async def test_lost_owner_references_come_back(self, env: ControlPlaneEnvironment) -> None:
        """Restore the owners of Machines and Secrets, and create no other Machine.

        Proves: SM-11, CP-19.
        """
        await env.running(3)
        before = _owners(env)
        assert len(before) > 3
        kind = env.kind.resource.kind
        reads = env.api.lists[kind]
        _lose_owners(env)
        await env.eventually("they are back", lambda: _owners(env) == before)
        assert env.api.lists[kind] > reads
        env.api.change("Cluster", CLUSTER, {"spec": {"paused": True}})
        await env.quiet()
        _lose_owners(env)
        await env.quiet()
        assert not any(_owners(env).values())
        env.api.change("Cluster", CLUSTER, {"spec": {"paused": None}})
        await env.eventually("they are back", lambda: _owners(env) == before)
        await env.settled(3)
        assert _owners(env) == before

    @scenario
    async def test_the_owner_of_a_template_gets_the_current_version(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """The garbage collector cannot look up an owner of a version that is no longer served.

        A later version is core's, which would write it again.

        Proves: CP-21.
        """
        await env.running(1)
        key = NamespacedName(NAMESPACE, "t1")

        def read_owner() -> JSON:
            (owner,) = (env.api.find("FakeMachineTemplate", key) or {})["metadata"][
                "ownerReferences"
            ]
            return dict(owner)

        def write_version(version: str) -> None:
            references = [{**before, "apiVersion": f"{GROUP}/{version}"}]
            body = {"metadata": {"ownerReferences": references}}
            env.api.change("FakeMachineTemplate", key, body)

        before = read_owner()
        write_version("v1alpha4")
        await env.eventually("it is the current one", lambda: read_owner() == before)
        write_version("v1")
        await env.quiet()
        assert read_owner()["apiVersion"] == f"{GROUP}/v1"

    @scenario
    async def test_machines_that_may_be_of_others_are_kept(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Adopt no Machine of another control plane or with another bootstrap provider.

        Proves: SM-11.
        """
        await env.running(1)
        (name,) = env.names()
        key = NamespacedName(NAMESPACE, name)
        label = f"{GROUP}/control-plane-name"
        own = _machine(env)
        lost: JSON = {"labels": {label: "other"}, "ownerReferences": None}
        env.api.change("Machine", key, {"metadata": lost})
        env.change(replicas=3)
        message = f"Machines without this owner are in this control plane: ['{name}']"
        await env.eventually("it is reported", lambda: message in str(env.status()))
        assert f"its label {label} is other, not {CONTROL_PLANE.name}" in str(env.status())
        assert not _owners(env)[name]
        kinds = {"configRef": {**own["spec"]["bootstrap"]["configRef"], "kind": "OtherConfig"}}
        labels = {"labels": {label: CONTROL_PLANE.name}}
        env.api.change("Machine", key, {"spec": {"bootstrap": kinds}, "metadata": labels})
        await env.quiet()
        assert not _owners(env)[name]
        env.api.change("Machine", key, {"spec": own["spec"]})
        await env.settled(3)

    @scenario
    async def test_objects_of_a_machine_that_was_begun_are_used(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Complete a Machine whose objects have lost their owner before it existed.

        Proves: SM-11, SM-09.
        """
        kinds = ("FakeMachine", env.kind.bootstrap_kind)
        env.api.fault = _refuse_machines
        env.add_control_plane(1)
        await env.eventually("it was begun", lambda: env.api.all(env.kind.bootstrap_kind))
        await env.stop()
        for obj in (each for kind in kinds for each in env.api.all(kind)):
            lost = {"metadata": {"ownerReferences": None}}
            env.api.change(obj["kind"], NamespacedName(NAMESPACE, obj["metadata"]["name"]), lost)
        env.api.fault = None
        env.start()
        await env.settled(1)
        for kind in kinds:
            assert [each["metadata"]["name"] for each in env.api.all(kind)] == env.names()

    @scenario
    async def test_a_control_plane_in_deletion_adopts_nothing(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Read the control plane from the API server before its Machines are adopted.

        Proves: SM-11.
        """
        await env.running(1)
        await env.stop()
        _lose_owners(env)
        obj, resource = env.obj(), env.kind.resource
        former = {**obj, "metadata": {**obj["metadata"], "uid": "former"}}
        assert await is_alive(env.api, resource, obj)
        assert not await is_alive(env.api, resource, former)
        env.api.remove(resource.kind, CONTROL_PLANE)
        assert not await is_alive(env.api, resource, obj)
        env.start()
        await env.quiet()
        assert not any(_owners(env).values())

    @scenario
    async def test_a_secret_that_is_restored_without_its_label_is_used(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """The watch shows only Secrets with the label of the cluster.

        Proves: SEC-03.
        """
        await env.running(1)
        await env.stop()
        env.start(sync_period=0.0)
        secret = next(each for each in _secrets(env) if each["metadata"]["name"].endswith("-ca"))
        name = secret["metadata"]["name"]
        env.api.remove("Secret", NamespacedName(NAMESPACE, name))
        message = f"Secret {name} is missing and must be restored"
        await env.eventually("it is reported", lambda: message in str(env.status()))
        await env.quiet()
        env.api.add({**secret, "metadata": {"name": name, "namespace": NAMESPACE}})
        await env.eventually("it is used", lambda: message not in str(env.status()))
        assert name in {each["metadata"]["name"] for each in _secrets(env)}


def _machine(env: ControlPlaneEnvironment) -> JSON:
    (found,) = env.api.all("Machine")
    return found


def _owners(env: ControlPlaneEnvironment) -> dict[str, list[JSON]]:
    """Return the owners of each Machine and each Secret of the control plane, by its name."""
    found = (each["metadata"] for each in (*env.api.all("Machine"), *_secrets(env)))
    return {each["name"]: each.get("ownerReferences") or [] for each in found}


def _secrets(env: ControlPlaneEnvironment) -> list[JSON]:
    """Return certificates and kubeconfig, which the control plane owns."""
    label = f"{GROUP}/cluster-name"
    found = env.api.all("Secret")
    return [each for each in found if label in each["metadata"].get("labels", {})]


def _lose_owners(env: ControlPlaneEnvironment) -> None:
    """Remove the owner references of Machines and Secrets, as a restored backup does."""
    for obj in (*env.api.all("Machine"), *_secrets(env)):
        lost = {"metadata": {"ownerReferences": None}}
        env.api.change(obj["kind"], NamespacedName(NAMESPACE, obj["metadata"]["name"]), lost)
