"""What the generated CRDs of resources say to clusterctl."""

from __future__ import annotations

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.resource.base import ResourceConformance
from capsmith_runtime.testing.resource.environment import BaseResourceEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("everything")


@run_with("everything", "bootstrap")
class TestResources(ResourceConformance):
    """What clusterctl does with resources."""

    @scenario
    async def test_clusterctl_moves_it_with_or_without_owners(
        self, env: BaseResourceEnvironment
    ) -> None:
        """The CRD has the label by which ``clusterctl move`` moves objects without owners, too.

        Proves: MV-02.
        """
        labels = env.manifests.crd(env.kind.resource.kind)["metadata"]["labels"]
        # The dependents of a cluster-scoped object must not stay at the source.
        suffix = "move-hierarchy" if env.kind.resource.namespaced else "move"
        assert f"clusterctl.cluster.x-k8s.io/{suffix}" in labels

    @scenario
    async def test_an_owner_that_does_not_exist_is_not_waited_for(
        self, env: BaseResourceEnvironment
    ) -> None:
        """The garbage collector removes the reference to it, or the resource."""
        names = {"apiVersion": env.kind.resource.api_version, "kind": env.kind.resource.kind}
        env.add({**names, "metadata": {"name": "gone", "uid": "gone"}})
        await env.is_ready()
