"""Resources that belong to a Cluster, by a label or by their owners.

A running cluster may already have such resources.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.resource.base import ResourceCase, ResourceConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.identities import has_sessions
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.testing.resource.environment import (
    BaseResourceEnvironment,
    ResourceEnvironment,
    StandaloneResourceEnvironment,
)

BELONGS = pytest.mark.parametrize("by", ["label", "owner"])


class TestResourcesOfClusters(ResourceConformance):
    """Resources that belong to a Cluster, by a label or by their owners."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ResourceCase]:
        """Return only cases with infrastructure and a namespaced kind."""
        return [
            case
            for case in super().cases(provider)
            if case.kind.resource.namespaced and case.controllers is not None
        ]

    @BELONGS
    @scenario
    async def test_it_is_paused_with_its_cluster(self, env: ResourceEnvironment, by: str) -> None:
        """A resource is not created while its Cluster is paused, and reports the pause.

        Proves: SM-01, ST-08.
        """
        cluster = await env.running_cluster()
        env.core.pause(cluster)
        await env.quiet()
        others = env.existing()
        _add(env, cluster, by)
        await env.eventually("it says so", lambda: _is_paused(env))
        await env.quiet()
        assert "finalizers" not in env.resource()["metadata"]
        assert env.existing() == others

        env.core.pause(cluster, False)
        await env.is_ready()
        assert condition(env.resource(), "Paused")[0] != "True"
        env.check_created(others)

    @BELONGS
    @scenario
    async def test_nothing_is_deleted_while_its_cluster_is_paused(
        self, env: ResourceEnvironment, by: str
    ) -> None:
        """A deleted resource keeps its infrastructure while its Cluster is paused.

        Proves: MV-08, SM-01.
        """
        cluster = await env.running_cluster()
        others = env.existing()
        _add(env, cluster, by)
        await env.is_ready()
        env.core.pause(cluster)
        env.delete()
        await env.quiet()
        assert _is_paused(env)
        env.check_created(others)

        env.core.pause(cluster, False)
        await env.is_deleted()
        assert env.existing() == others

    @scenario
    async def test_it_waits_for_a_cluster_that_does_not_exist(
        self, env: ResourceEnvironment
    ) -> None:
        """A resource waits for a Cluster that does not exist yet.

        clusterctl may create the Cluster later, in a paused state.
        """
        env.add(cluster="c1")
        missing = ("False", "ClusterNotFound")
        await env.eventually("it says so", lambda: env.shows(env.resource(), "Ready", *missing))
        assert env.existing() == []
        await env.running_cluster()
        await env.is_ready()

    @BELONGS
    @scenario
    async def test_it_is_deleted_after_its_cluster(self, env: ResourceEnvironment, by: str) -> None:
        """A resource can be deleted even if its Cluster no longer exists.

        Proves: SM-08.
        """
        cluster = await env.running_cluster()
        _add(env, cluster, by)
        await env.is_ready()
        kind = env.cluster_kind.resource.kind
        env.api.remove(kind, cluster)
        env.api.remove("Cluster", cluster)
        await env.eventually("its owner is gone", lambda: env.api.find(kind, cluster) is None)
        # The owner's reconcile_delete may have deleted its resources.
        if env.found() is not None:
            env.delete()
        await env.is_deleted()
        assert env.existing() == []

    @BELONGS
    @scenario
    async def test_it_takes_over_the_identity_of_its_cluster(
        self, env: ResourceEnvironment, by: str
    ) -> None:
        """A resource without an identity gets its Cluster's identity.

        If the provider has no kinds of identities, the author declares the field ``identityRef``.
        """
        resource = env.kind.resource
        schema = env.manifests.schema(resource.kind, resource.version)
        if "identityRef" in schema["properties"]["spec"].get("required", ()):
            pytest.skip("the CRD requires identityRef: no resource is without an identity")
        cluster = await env.running_cluster()
        before = env.core.infra_cluster(cluster)["spec"].get("identityRef")
        if before is None and has_sessions(env.kind):
            pytest.skip("clusters have no identity that a resource could take over")
        _add(env, cluster, by)
        env.change({"spec": {"identityRef": None}})
        await env.is_ready()
        expected = before if env.controllers.identities else None
        assert env.resource()["spec"].get("identityRef") == expected


def _add(env: ResourceEnvironment, cluster: NamespacedName, by: str) -> None:
    if by == "label":
        env.add(cluster=cluster.name)
    else:
        owner: JSON = env.core.infra_cluster(cluster)
        env.add(owner)


def _is_paused(env: BaseResourceEnvironment) -> bool:
    return env.shows(env.resource(), "Paused", "True", "Paused")


class TestStandaloneResources(ResourceConformance):
    """Resources that belong to a Cluster by a label, in a provider without infrastructure."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ResourceCase]:
        """Return only the cases of namespaced kinds, because a Cluster has a namespace."""
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
        await env.eventually("it says so", lambda: _is_paused(env))
        await env.quiet()
        assert "finalizers" not in env.resource()["metadata"]
        assert env.existing() == []

        env.pause(cluster, False)
        await env.is_ready()
        assert condition(env.resource(), "Paused")[0] != "True"
        env.check_created()

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
        env.check_created()

        env.pause(cluster, False)
        await env.is_deleted()
        assert env.existing() == []

    @scenario
    async def test_it_waits_for_a_cluster_that_does_not_exist(
        self, env: StandaloneResourceEnvironment
    ) -> None:
        """A resource waits for a Cluster that does not exist yet.

        clusterctl may create the Cluster later, in a paused state.
        """
        env.add(cluster="c1")
        missing = ("False", "ClusterNotFound")
        await env.eventually("it says so", lambda: env.shows(env.resource(), "Ready", *missing))
        assert env.existing() == []
        env.add_cluster()
        await env.is_ready()
