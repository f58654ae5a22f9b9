"""Bootstrap data for MachinePools: one Secret, which stays valid for later machines."""

from __future__ import annotations

from capsmith_runtime.testing.bootstrap.environment import BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("bootstrap")


@run_with("bootstrap", "complete", "two-contracts")
class TestBootstrapDataOfPools(BootstrapConformance):
    """Bootstrap data of MachinePools: one Secret, which stays valid for later machines."""

    @scenario
    async def test_a_pool_never_reports_a_terminal_failure(self, env: BootstrapEnvironment) -> None:
        """Core panics if a pool's configuration reports any terminal failure.

        Proves: MP-13.
        """
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        metadata = {"namespace": cluster.namespace, "name": "p1"}
        env.api.add({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        key = env.add_pool(cluster)
        await env.says(key, "DataSecretNameTaken")
        await env.quiet()
        assert not {"failureReason", "failureMessage"} & env.config(key)["status"].keys()
