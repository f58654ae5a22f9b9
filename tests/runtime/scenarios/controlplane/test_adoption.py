"""A control plane that a user creates for Machines which existed without one."""

from __future__ import annotations

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.controlplane.environment import (
    CONTROL_PLANE,
    GROUP,
    NAMESPACE,
    ControlPlaneEnvironment,
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
    async def test_keys_outlive_the_configuration_that_had_them(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Become the owner of keys that the adopted Machine's configuration owned.

        They would be collected with the configuration when the Machine is replaced.

        Proves: SM-11, SEC-03.
        """
        name = await _stand_alone(env)
        config = env.api.find(env.kind.bootstrap_kind, NamespacedName(NAMESPACE, name))
        assert config is not None
        owner = {
            "apiVersion": config["apiVersion"],
            "kind": config["kind"],
            "name": name,
            "uid": config["metadata"]["uid"],
            "controller": True,
        }
        for secret in _secrets(env):
            key = NamespacedName(NAMESPACE, secret["metadata"]["name"])
            env.api.change("Secret", key, {"metadata": {"ownerReferences": [owner]}})
        env.add_control_plane(1)
        env.start()
        await env.settled(1)
        own = [env.obj()["metadata"]["uid"]]
        for secret in _secrets(env):
            if not secret["metadata"]["name"].endswith("-kubeconfig"):
                assert _controllers(secret) == own, secret["metadata"]["name"]

    @scenario
    async def test_a_machine_of_a_distant_version_is_not_adopted(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Report a Machine from whose version no upgrade is possible, and leave its keys alone.

        Proves: SM-11.
        """
        name = await _stand_alone(env)
        key = NamespacedName(NAMESPACE, name)
        env.api.change("Machine", key, {"spec": {"version": "v1.32.9"}})
        keys = [each["metadata"].get("ownerReferences") for each in _secrets(env)]
        env.add_control_plane(3)
        env.start()
        message = f"Machines without this owner are in this control plane: ['{name}']"
        await env.eventually("it is reported", lambda: message in str(env.status()))
        await env.quiet()
        assert env.names() == [name]
        (machine,) = env.api.all("Machine")
        assert not _controllers(machine)
        assert NAME_LABEL not in machine["metadata"]["labels"]
        assert len(_secrets(env)) == len(keys)
        env.api.change("Machine", key, {"spec": {"version": "v1.33.1"}})
        await env.settled(3)


async def _stand_alone(env: ControlPlaneEnvironment) -> str:
    """Leave a cluster with one Machine and no control plane, and the manager stopped."""
    await env.running(1)
    await env.stop()
    env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
    env.api.change(env.kind.resource.kind, CONTROL_PLANE, {"metadata": {"finalizers": None}})
    for secret in _secrets(env):
        key = NamespacedName(NAMESPACE, secret["metadata"]["name"])
        env.api.change("Secret", key, {"metadata": {"ownerReferences": None}})
    (name,) = env.names()
    without: JSON = {
        "labels": {NAME_LABEL: None},
        "annotations": None,
        "ownerReferences": None,
    }
    env.api.change("Machine", NamespacedName(NAMESPACE, name), {"metadata": without})
    assert env.api.find(env.kind.resource.kind, CONTROL_PLANE) is None
    return name


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
