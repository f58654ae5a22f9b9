"""Resources that belong to a Cluster by a label, in a provider without infrastructure."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.resource.base import ResourceCase, ResourceConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.testing.resource.environment import StandaloneResourceEnvironment


class TestStandaloneResources(ResourceConformance):
    """Resources that belong to a Cluster by a label, in a provider without infrastructure."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ResourceCase]:
        """Return only namespaced kinds, because a Cluster has a namespace."""
        return [
            case
            for case in super().cases(provider)
            if case.kind.resource.namespaced and case.controllers is None
        ]

    @scenario
    async def test_it_is_paused_with_its_cluster(self, env: StandaloneResourceEnvironment) -> None:
        """A resource is not created while its Cluster is paused, and reports the pause.

        Proves: SM-01, ST-08.
        """
        cluster = env.add_cluster(paused=True)
        env.add(cluster=cluster.name)
        await env.eventually("it says so", lambda: _paused(env) == ("True", "Paused"))
        await env.quiet()
        assert "finalizers" not in env.resource()["metadata"]
        assert env.existing() == []

        env.pause(cluster, False)
        await env.is_ready()
        assert _paused(env)[0] != "True"
        assert len(env.existing()) == 1

    @scenario
    async def test_nothing_is_deleted_while_its_cluster_is_paused(
        self, env: StandaloneResourceEnvironment
    ) -> None:
        """A deleted resource keeps its infrastructure while its Cluster is paused.

        Proves: MV-08, SM-01.
        """
        cluster = env.add_cluster()
        env.add(cluster=cluster.name)
        await env.is_ready()
        env.pause(cluster)
        env.delete()
        await env.quiet()
        assert len(env.existing()) == 1

        env.pause(cluster, False)
        await env.is_deleted()
        assert env.existing() == []

    @scenario
    async def test_it_waits_for_a_cluster_that_does_not_exist(
        self, env: StandaloneResourceEnvironment
    ) -> None:
        """A resource waits for a Cluster that does not exist yet.

        clusterctl may create the Cluster paused.
        """
        env.add(cluster="c1")
        missing = ("False", "ClusterNotFound")
        await env.eventually("it says so", lambda: env.ready() == missing)
        assert env.existing() == []
        env.add_cluster()
        await env.is_ready()


def _paused(env: StandaloneResourceEnvironment) -> tuple[str, str]:
    return condition(env.resource(), "Paused")
