"""Control planes that are deleted after the workers of their cluster."""

from __future__ import annotations

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import (
    ControlPlaneConformance,
    ManagedControlPlaneConformance,
)
from capsmith_runtime.testing.controlplane.environment import (
    CLUSTER,
    CONTROL_PLANE,
    GROUP,
    NAMESPACE,
    ControlPlaneEnvironment,
)
from capsmith_runtime.testing.controlplane.managed_environment import ManagedControlPlaneEnvironment
from capsmith_runtime.testing.environment import TestEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")
POOL = NamespacedName(NAMESPACE, "pool")
WORKER = NamespacedName(NAMESPACE, "worker")


@run_with("complete", "control-plane", "two-contracts")
class TestWorkersOfControlPlanes(ControlPlaneConformance):
    """Workers of a cluster whose control plane consists of Machines."""

    @scenario
    async def test_the_last_machine_pool_goes_first(self, env: ControlPlaneEnvironment) -> None:
        """Proves: CP-34."""
        await env.running(1)
        machines = env.names()
        _add(env, "MachinePool", POOL)
        env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
        await env.quiet()
        assert env.names() == machines
        env.api.remove("MachinePool", POOL)
        await env.eventually("the control plane follows", lambda: not _is_there(env))


@run_with("managed")
class TestWorkersOfManagedControlPlanes(ManagedControlPlaneConformance):
    """Workers of a cluster with a managed control plane."""

    @scenario
    async def test_machines_and_machine_pools_go_first(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Proves: CP-34."""
        await env.running()
        _add(env, "MachinePool", POOL)
        _add(env, "Machine", WORKER)
        env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
        for kind, worker in (("Machine", WORKER), ("MachinePool", POOL)):
            await env.quiet()
            assert len(env.hosting.control_planes()) == 1
            env.api.remove(kind, worker)
        # An event leads to the deletion: the next period is in ten seconds.
        await env.quiet()
        assert not _is_there(env)
        assert not env.hosting.control_planes()


def _add(env: TestEnvironment, kind: str, key: NamespacedName) -> None:
    obj: JSON = {
        "apiVersion": f"{GROUP}/{env.api.core_version}",
        "kind": kind,
        "metadata": {"namespace": key.namespace, "name": key.name},
        "spec": {"clusterName": CLUSTER.name},
    }
    env.api.add(obj)


def _is_there(env: ControlPlaneEnvironment | ManagedControlPlaneEnvironment) -> bool:
    return env.api.find(env.kind.resource.kind, CONTROL_PLANE) is not None
