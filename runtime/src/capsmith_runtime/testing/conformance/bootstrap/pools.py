"""Bootstrap data of MachinePools: one Secret, which stays valid for later machines."""

from __future__ import annotations

from capsmith_runtime.testing.bootstrap.environment import BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance
from capsmith_runtime.testing.environment import condition

IN_PLACE = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"


class TestBootstrapDataOfPools(BootstrapConformance):
    """Bootstrap data of MachinePools: one Secret, which stays valid for later machines."""

    @scenario
    async def test_a_pool_gets_its_data(self, env: BootstrapEnvironment) -> None:
        """A pool gets its data after the control plane is initialized, and never takes the lock.

        Proves: BC-11, BC-12.
        """
        cluster = env.add_cluster()
        key = env.add_pool(cluster)
        await env.says(key, "WaitingForControlPlaneInitialized")
        assert env.lock(cluster) is None, "a pool initialises nothing"

        env.control_plane_is_initialized(cluster)
        await env.has_data(key)
        assert condition(env.config(key), "Ready") == ("True", "Ready")

    @scenario
    async def test_data_follow_the_version_of_the_pool(self, env: BootstrapEnvironment) -> None:
        """A new Kubernetes version of the pool replaces the data in the same Secret.

        Core has copied the name of the Secret, so the name must not change.

        Proves: MP-19.
        """
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_pool(cluster)
        await env.has_data(key)
        env.adopt("MachinePool", key)
        await env.quiet()
        before = env.secret(key)
        assert before is not None

        version = {"spec": {"template": {"spec": {"version": "v1.35.0"}}}}
        env.api.change("MachinePool", key, version)
        await env.eventually("created again", lambda: env.secret(key) != before)
        await env.quiet()
        secret = env.secret(key)
        assert secret is not None
        assert secret["metadata"]["uid"] == before["metadata"]["uid"]
        assert env.config(key)["status"]["dataSecretName"] == key.name

    @scenario
    async def test_data_stay_while_machines_are_changed_in_place(
        self, env: BootstrapEnvironment
    ) -> None:
        """Data do not change during an in-place update, and are created again after it.

        Proves: BC-15.
        """
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_pool(cluster)
        await env.has_data(key)
        await env.quiet()
        before = env.secret(key)

        marks = {"metadata": {"annotations": {IN_PLACE: ""}}}
        env.api.change(env.kind.resource.kind, key, marks)
        version = {"spec": {"template": {"spec": {"version": "v1.35.0"}}}}
        env.api.change("MachinePool", key, version)
        await env.quiet()
        assert env.secret(key) == before

        done = {"metadata": {"annotations": {IN_PLACE: None}}}
        env.api.change(env.kind.resource.kind, key, done)
        await env.eventually("created again", lambda: env.secret(key) != before)
