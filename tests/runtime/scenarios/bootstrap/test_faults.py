"""Bootstrap data during pauses, moves and crashes: no machine ever gets two sets of data."""

from __future__ import annotations

from capsmith_runtime.testing.bootstrap.environment import BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("bootstrap")
DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"


@run_with("bootstrap", "complete", "two-contracts")
class TestBootstrapFaults(BootstrapConformance):
    """Bootstrap data during pauses, moves and crashes: no machine ever gets two sets of data."""

    @scenario
    async def test_a_copy_that_a_move_deletes_is_left_alone(
        self, env: BootstrapEnvironment
    ) -> None:
        """Proves: MV-07, MV-08."""
        cluster = env.add_cluster(ready=False)
        key = env.add_machine(cluster, "cp1", control_plane=True)
        marks = {"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}}
        env.api.change(env.kind.resource.kind, key, marks)
        env.infrastructure_is_ready(cluster)
        await env.quiet()
        assert env.secret(key) is None
        assert env.lock(cluster) is None
