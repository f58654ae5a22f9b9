"""Clusters and machines whose names exist in several namespaces."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
    has_cluster_resources,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest, list_clusters

ELSEWHERE = "elsewhere"


class TestNamespaces(InfrastructureConformance):
    """Objects of one name in two namespaces.

    A test double with the method ``objects`` has its hosts in one namespace only, and no such
    tests.
    """

    needs_machines = False

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return the cases in which machines need no objects that users create first."""
        return [] if hasattr(provider.infrastructure, "objects") else super().cases(provider)

    @scenario
    async def test_objects_of_one_name_are_kept_apart(self, env: InfrastructureEnvironment) -> None:
        """Clusters and machines of one name in two namespaces share nothing but their name.

        Names are unique in a namespace only: find what you have created by ``external_id`` or
        ``short_id``, and return the id that the infrastructure has chosen as provider id.

        Proves: IM-02, SM-09.
        """
        env.core.add_namespace(env.controllers.identities, ELSEWHERE)
        here, there = await env.running_cluster(), await env.running_cluster(namespace=ELSEWHERE)
        if has_cluster_resources(env.infrastructure):
            assert len(env.infrastructure.clusters()) == 2, "two clusters of one name share one"
        if env.has_machines:
            keys = [await env.running_machine(cluster) for cluster in (here, there)]
            ids = {env.core.infra_machine(key)["spec"]["providerID"] for key in keys}
            assert len(ids) == 2, f"two machines of one name have one provider id: {ids}"
            assert len(env.infrastructure.servers()) == 2, "two machines of one name share one"
            env.api.remove(env.machine_kind.resource.kind, keys[1])
            await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, keys[1]))
            await env.restart()
            await env.quiet()
            assert len(env.infrastructure.servers()) == 1
            assert env.shows(env.core.infra_machine(keys[0]), "Ready", "True")

        env.api.remove(env.cluster_kind.resource.kind, there)
        await env.eventually("it is gone", lambda: env.is_gone(env.cluster_kind, there))
        if has_cluster_resources(env.infrastructure):
            assert len(list_clusters(env.infrastructure)) == 1
