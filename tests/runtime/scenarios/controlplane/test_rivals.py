"""Two control planes of one Cluster, which a user can create, and which share its Secrets."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import (
    ControlPlaneConformance,
    ManagedControlPlaneConformance,
)
from capsmith_runtime.testing.controlplane import environment, managed_environment
from capsmith_runtime.testing.controlplane.environment import ControlPlaneEnvironment
from capsmith_runtime.testing.controlplane.managed_environment import ManagedControlPlaneEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")
OTHER = "another"


def add_other(env: Any, key: NamespacedName) -> NamespacedName:
    """Add a copy of a control plane under another name, and return its key."""
    own = env.obj()
    metadata = {name: own["metadata"][name] for name in ("namespace", "labels", "ownerReferences")}
    head = {"apiVersion": own["apiVersion"], "kind": own["kind"], "spec": own["spec"]}
    env.api.add({**head, "metadata": {**metadata, "name": OTHER}})
    return NamespacedName(key.namespace, OTHER)


def read_secrets(env: Any) -> list[JSON]:
    return sorted(env.api.all("Secret"), key=lambda each: str(each["metadata"]["name"]))


def message(env: Any, key: NamespacedName) -> str:
    return str((env.api.find(env.kind.resource.kind, key) or {}).get("status"))


@run_with("complete", "control-plane", "two-contracts")
class TestRivals(ControlPlaneConformance):
    """A second control plane of the kind with the same Cluster as its owner."""

    @scenario
    async def test_it_changes_no_secret_and_says_why(self, env: ControlPlaneEnvironment) -> None:
        """Proves: SEC-03."""
        name = environment.CONTROL_PLANE.name
        await env.running(1)
        before = read_secrets(env)
        other = add_other(env, environment.CONTROL_PLANE)
        text = f"it belongs to the control plane {name} of the same Cluster"
        await env.eventually("it is reported", lambda: text in message(env, other))
        await env.quiet()
        assert read_secrets(env) == before

    @scenario
    async def test_it_takes_over_when_the_first_one_is_gone(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Proves: SEC-03."""
        await env.running(1)
        other = add_other(env, environment.CONTROL_PLANE)
        await env.eventually("it waits", lambda: "belongs to" in message(env, other))
        # Without the garbage collector, the Secrets stay, as after an orphaning deletion.
        env.api.remove(env.kind.resource.kind, environment.CONTROL_PLANE)
        await env.eventually("it does not wait", lambda: "belongs to" not in message(env, other))


@run_with("managed")
class TestManagedRivals(ManagedControlPlaneConformance):
    """A second managed control plane with the same Cluster as its owner."""

    @scenario
    async def test_it_changes_no_kubeconfig_and_says_why(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Proves: SEC-01."""
        name = managed_environment.CONTROL_PLANE.name
        await env.running()
        before = env.api.find("Secret", managed_environment.KUBECONFIG)
        other = add_other(env, managed_environment.CONTROL_PLANE)
        text = f"it belongs to the control plane {name} of the same Cluster"
        await env.eventually("it is reported", lambda: text in message(env, other))
        await env.quiet()
        assert env.api.find("Secret", managed_environment.KUBECONFIG) == before
        env.api.remove(env.kind.resource.kind, managed_environment.CONTROL_PLANE)
        await env.eventually("it does not wait", lambda: "belongs to" not in message(env, other))
