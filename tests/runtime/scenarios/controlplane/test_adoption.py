"""A control plane that a user creates for Machines which existed without one."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.controlplane.api import ControlPlaneMember
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance, Override
from capsmith_runtime.testing.controlplane.environment import (
    CLUSTER,
    CONTROL_PLANE,
    GROUP,
    NAMESPACE,
    ControlPlaneEnvironment,
    condition,
    shows,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")
NAME_LABEL = f"{GROUP}/control-plane-name"


@run_with("complete", "two-contracts")
class TestAdoption(ControlPlaneConformance):
    """Machines without an owner and without the label of a control plane."""

    @scenario
    async def test_an_existing_machine_is_adopted(self, env: ControlPlaneEnvironment) -> None:
        """Make an existing Machine the first of a control plane, and create the others beside it.

        Proves: SM-11, CP-19.
        """
        name = await _stand_alone(env)
        before = _keys(env)
        env.add_control_plane(1)
        env.start()
        await env.settled(1)
        assert env.names() == [name]
        (machine,) = env.api.all("Machine")
        assert machine["metadata"]["labels"][NAME_LABEL] == CONTROL_PLANE.name
        assert _controllers(machine) == [env.obj()["metadata"]["uid"]]
        env.change(replicas=3)
        await env.settled(3)
        assert name in env.names()
        assert _keys(env) == before

    @scenario
    async def test_before_remove_runs_for_an_adopted_machine(
        self, env: ControlPlaneEnvironment, override: Override
    ) -> None:
        """Proves: SM-05, SM-11."""
        name = await _stand_alone(env)
        asked: list[str] = []

        def before_remove(self: Any, member: ControlPlaneMember[Any]) -> None:
            asked.append(member.machine.name)

        override(env, before_remove=before_remove)
        env.add_control_plane(3)
        env.start()
        await env.settled(3)
        env.api.remove("Machine", NamespacedName(NAMESPACE, name))
        await env.eventually("it is gone", lambda: name not in env.names())
        assert asked == [name]

    @scenario
    async def test_keys_outlive_the_configuration_that_had_them(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Become the owner of keys that the adopted Machine's configuration owned.

        They would be collected with the configuration when the Machine is replaced.

        Proves: SM-11, SEC-03.
        """
        name = await _stand_alone(env)
        _own_keys(env, name)
        env.add_control_plane(1)
        env.start()
        await env.settled(1)
        assert set(_owners_of_keys(env).values()) == {CONTROL_PLANE.name}

    @scenario
    async def test_a_machine_of_a_distant_version_is_not_adopted(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Report a Machine from whose version no upgrade is possible, and leave its keys alone.

        Proves: SM-11.
        """
        name = await _stand_alone(env)
        _own_keys(env, name)
        before = _owners_of_keys(env)
        key = NamespacedName(NAMESPACE, name)
        env.api.change("Machine", key, {"spec": {"version": "v1.32.9"}})
        env.add_control_plane(3)
        env.start()
        message = f"Machines without this owner are in this control plane: ['{name}']"
        await env.eventually("it is reported", lambda: message in str(env.status()))
        await _assert_not_adopted(env, name, "its version v1.32.9 ")
        assert _owners_of_keys(env) == before
        env.api.change("Machine", key, {"spec": {"version": "v1.33.1"}})
        await env.settled(3)
        assert set(_owners_of_keys(env).values()) == {CONTROL_PLANE.name}

    @scenario
    async def test_a_machine_of_another_bootstrap_provider_is_not_adopted(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Leave a Machine alone whose bootstrap configuration another provider reconciles.

        Proves: SM-11.
        """
        name = await _stand_alone(env)
        reference = env.api.all("Machine")[0]["spec"]["bootstrap"]["configRef"]
        _change_configuration(env, name, {**reference, "kind": "OtherConfig"})
        env.add_control_plane(1)
        env.start()
        await _assert_not_adopted(
            env, name, "its bootstrap configuration is of the kind OtherConfig."
        )
        _change_configuration(env, name, reference)
        await env.settled(1)
        assert env.names() == [name]

    @scenario
    async def test_a_machine_without_a_version_is_adopted(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Adopt a Machine of which the user has not said the version.

        It is outdated. While it is foreign, nothing could be created to replace it.

        Proves: SM-11.
        """
        name = await _stand_alone(env)
        key = NamespacedName(NAMESPACE, name)
        env.api.change("Machine", key, {"spec": {"version": None}})
        env.add_control_plane(1)
        env.start()
        await env.settled(1)
        assert env.names() != [name]

    @scenario
    async def test_keys_are_taken_over_for_each_machine(self, env: ControlPlaneEnvironment) -> None:
        """Take over the keys of an adopted Machine beside one that cannot be adopted.

        Proves: SM-11, SEC-03.
        """
        near, distant = await _two_machines(env)
        _own_keys(env, near)
        _own_keys(env, distant, only=f"{CLUSTER.name}-sa")
        env.add_control_plane(1)
        env.start()
        await _assert_not_adopted(env, distant, "its version v1.32.9 ")
        (machine,) = (each for each in env.api.all("Machine") if each["metadata"]["name"] == near)
        assert _controllers(machine) == [env.obj()["metadata"]["uid"]]
        owners = _owners_of_keys(env)
        assert owners.pop(f"{CLUSTER.name}-sa") == distant
        assert set(owners.values()) == {CONTROL_PLANE.name}

    @scenario
    async def test_a_machine_is_reported_while_nothing_is_scaled(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Report a Machine that cannot be adopted beside as many as the user wants.

        A control plane in deletion adopts nothing, and does not report it.

        Proves: SM-11.
        """
        _, distant = await _two_machines(env)
        env.add_control_plane(1)
        env.start()
        await _assert_not_adopted(env, distant, "its version v1.32.9 ")
        scaling = condition(env.obj(), "ScalingUp")
        assert scaling["status"] == "False"
        assert f"Machine {distant} has no controller" in scaling["message"]
        _add_worker(env)
        env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
        await env.eventually("it is deleting", lambda: shows(env.obj(), "Deleting", "True"))
        await env.quiet()
        assert distant not in str(env.status())

    @scenario
    async def test_a_machine_with_a_controller_is_not_said_to_be_adoptable(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Name a Machine that another object controls, without a reason of its own.

        Proves: SM-11.
        """
        name = await _stand_alone(env)
        other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other"}
        owners = [{**other, "controller": True}]
        key = NamespacedName(NAMESPACE, name)
        lost: JSON = {"metadata": {"ownerReferences": owners}, "spec": {"version": "v1.32.9"}}
        env.api.change("Machine", key, lost)
        env.add_control_plane(3)
        env.start()
        message = f"Machines without this owner are in this control plane: ['{name}']"
        await env.eventually("it is reported", lambda: message in str(env.status()))
        await env.quiet()
        assert "has no controller" not in str(env.status())
        assert not _failures(env)


async def _stand_alone(env: ControlPlaneEnvironment) -> str:
    """Leave a cluster with one Machine and no control plane, and the manager stopped."""
    await env.running(1)
    (name,) = await _remove_control_plane(env)
    return name


async def _two_machines(env: ControlPlaneEnvironment) -> tuple[str, str]:
    """Leave two Machines and no control plane; the second one has a distant version."""
    await env.running(2)
    near, distant = await _remove_control_plane(env)
    key = NamespacedName(NAMESPACE, distant)
    env.api.change("Machine", key, {"spec": {"version": "v1.32.9"}})
    return near, distant


async def _remove_control_plane(env: ControlPlaneEnvironment) -> list[str]:
    """Stop the manager, remove all traces of the control plane, and return its Machines' names."""
    await env.stop()
    env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
    env.api.change(env.kind.resource.kind, CONTROL_PLANE, {"metadata": {"finalizers": None}})
    for secret in _secrets(env):
        key = NamespacedName(NAMESPACE, secret["metadata"]["name"])
        env.api.change("Secret", key, {"metadata": {"ownerReferences": None}})
    without: JSON = {
        "labels": {NAME_LABEL: None},
        "annotations": None,
        "ownerReferences": None,
    }
    for name in env.names():
        env.api.change("Machine", NamespacedName(NAMESPACE, name), {"metadata": without})
    assert env.api.find(env.kind.resource.kind, CONTROL_PLANE) is None
    return env.names()


async def _assert_not_adopted(env: ControlPlaneEnvironment, name: str, why: str) -> None:
    """Wait until an event says why a Machine is not adopted, and check that it is unchanged."""
    expected = f"Machine {name} has no controller and cannot be adopted: {why}"
    await env.eventually("an event", lambda: any(expected in each for each in _failures(env)))
    await env.quiet()
    assert len(_failures(env)) == 1
    (machine,) = (each for each in env.api.all("Machine") if each["metadata"]["name"] == name)
    assert not _controllers(machine)
    assert NAME_LABEL not in machine["metadata"]["labels"]


def _failures(env: ControlPlaneEnvironment) -> list[str]:
    events = env.api.all("Event")
    return [each["note"] for each in events if each["reason"] == "AdoptionFailed"]


def _own_keys(env: ControlPlaneEnvironment, name: str, only: str = "") -> None:
    """Make a Machine's bootstrap configuration the controller of keys, as kubeadm's provider."""
    config = env.api.find(env.kind.bootstrap_kind, NamespacedName(NAMESPACE, name))
    assert config is not None
    owner = {
        "apiVersion": config["apiVersion"],
        "kind": config["kind"],
        "name": name,
        "uid": config["metadata"]["uid"],
        "controller": True,
    }
    for secret in (only,) if only else _owners_of_keys(env):
        key = NamespacedName(NAMESPACE, secret)
        env.api.change("Secret", key, {"metadata": {"ownerReferences": [owner]}})


def _owners_of_keys(env: ControlPlaneEnvironment) -> dict[str, str | None]:
    """Return the name of each key's controller, or None if it has no owner."""
    owners: dict[str, str | None] = {}
    for secret in (each["metadata"] for each in _secrets(env)):
        if not secret["name"].endswith("-kubeconfig"):
            (owner,) = secret.get("ownerReferences") or [{"name": None, "controller": True}]
            assert owner["controller"]
            owners[secret["name"]] = owner["name"]
    assert len(owners) == 4
    return owners


def _change_configuration(env: ControlPlaneEnvironment, name: str, reference: JSON) -> None:
    spec = {"bootstrap": {"configRef": reference}}
    env.api.change("Machine", NamespacedName(NAMESPACE, name), {"spec": spec})


def _add_worker(env: ControlPlaneEnvironment) -> None:
    """Add a worker, which a control plane in deletion waits for."""
    env.api.add(
        {
            "apiVersion": f"{GROUP}/{env.api.core_version}",
            "kind": "MachinePool",
            "metadata": {"namespace": NAMESPACE, "name": "pool"},
            "spec": {"clusterName": CLUSTER.name},
        }
    )


def _secrets(env: ControlPlaneEnvironment) -> list[JSON]:
    """Return the keys and the kubeconfig of the cluster."""
    label = f"{GROUP}/cluster-name"
    found = env.api.all("Secret")
    return [each for each in found if label in each["metadata"].get("labels", {})]


def _keys(env: ControlPlaneEnvironment) -> dict[str, JSON]:
    return {each["metadata"]["name"]: each["data"] for each in _secrets(env)}


def _controllers(obj: JSON) -> list[str]:
    references = obj["metadata"].get("ownerReferences") or []
    return [each["uid"] for each in references if each.get("controller")]
