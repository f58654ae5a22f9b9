"""Bootstrap data for Machines: their order, and how they are published."""

from __future__ import annotations

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.bootstrap.environment import NAMESPACE, BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("bootstrap")


@run_with("bootstrap", "complete", "two-contracts")
class TestBootstrapData(BootstrapConformance):
    """Bootstrap data of Machines: in which order they are created, and how they are published."""

    @scenario
    async def test_a_lock_outlives_a_crash(self, env: BootstrapEnvironment) -> None:
        """A machine that holds the lock keeps it; no other machine initializes meanwhile.

        Proves: BC-12, SM-09.
        """
        cluster = env.add_cluster()
        env.api.remove("Secret", NamespacedName(NAMESPACE, f"{cluster.name}-ca"))
        first = env.add_machine(cluster, "cp1", control_plane=True)
        await env.eventually("it has the lock", lambda: env.lock(cluster) is not None)
        second = env.add_machine(cluster, "cp2", control_plane=True)
        await env.restart()
        await env.quiet()
        lock = env.lock(cluster)
        assert lock is not None
        assert first.name in lock["data"]["lock-information"]
        assert not env.created(second)

    @scenario
    async def test_data_from_the_user_are_kept(self, env: BootstrapEnvironment) -> None:
        """Proves: BC-12."""
        cluster = env.add_cluster(ready=False)
        key = env.add_machine(cluster, "m1")
        given = {"spec": {"bootstrap": {"dataSecretName": "mine"}}}
        env.api.change("Machine", key, given)
        env.infrastructure_is_ready(cluster)
        env.control_plane_is_initialized(cluster)
        await env.has_data(key)
        assert env.config(key)["status"]["dataSecretName"] == "mine"
        assert env.secret(key) is None
