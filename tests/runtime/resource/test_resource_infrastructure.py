"""What reconcilers of resources see of the infrastructure cluster of their Cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from capsmith_runtime.infrastructure import Deleted, InfraClusterView, Waiting
from capsmith_runtime.resource import ResourceDeleteScope, ResourceScope, ResourceState
from capsmith_runtime.testing import infrastructure, resource
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.resource.environment import ResourceEnvironment
from tests.runtime.resource import scripted_resources
from tests.runtime.resource.scripted_resources import (
    CLUSTER,
    SECURITY_GROUP,
    SecurityGroupConformance,
    SecurityGroupReconciler,
    script,
)

PROVIDER = scripted_resources.PROVIDER
scripts = scripted_resources.scripts
NEVER = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStatus:
    """The status of a NimbusCluster."""

    network_id: str | None = field(default=None, metadata={"json": "networkID"})


class TestInfrastructureCluster(SecurityGroupConformance):
    """The view in the scopes of a namespaced kind."""

    @scenario
    async def test_it_reads_its_infrastructure_cluster_and_waits_for_its_status(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without events other than that of the cluster."""
        views: list[InfraClusterView | None] = []

        def normal(scope: ResourceScope[Any]) -> ResourceState | Waiting:
            views.append(scope.infra_cluster)
            assert scope.infra_cluster is not None
            if scope.infra_cluster.status(NetworkStatus).network_id is None:
                return Waiting("NoNetwork", requeue_after=NEVER)
            return ResourceState()

        script(monkeypatch, normal)
        cluster = await env.running_cluster()
        env.add(env.core.infra_cluster(cluster))
        await env.eventually("called", lambda: views)
        await env.quiet()
        env.api.change(CLUSTER, cluster, {"status": {"networkID": "n-1"}})
        await env.is_ready()
        view = views[-1]
        assert view is not None
        assert (view.name, view.kind) == (cluster.name, CLUSTER)
        assert view.status(NetworkStatus).network_id == "n-1"

    @scenario
    async def test_a_deletion_reads_the_infrastructure_cluster_of_a_deleted_cluster(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        views: list[InfraClusterView | None] = []

        def delete(scope: ResourceDeleteScope[Any]) -> Deleted:
            views.append(scope.infra_cluster)
            return Deleted()

        monkeypatch.setattr(SecurityGroupReconciler, "delete", staticmethod(delete))
        cluster = await env.running_cluster()
        env.add(env.core.infra_cluster(cluster))
        await env.is_ready()
        env.api.remove("Cluster", cluster)
        env.api.remove(SECURITY_GROUP, env.key)
        await env.eventually("deleted", lambda: views)
        assert views[0] is not None
        assert views[0].name == cluster.name

    @scenario
    async def test_without_cluster_there_is_no_infrastructure_cluster(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scopes: list[ResourceScope[Any]] = []

        def normal(scope: ResourceScope[Any]) -> ResourceState:
            scopes.append(scope)
            return ResourceState()

        script(monkeypatch, normal)
        env.add()
        await env.is_ready()
        assert scopes[-1].infra_cluster is None


def test_unit_tests_give_a_view() -> None:
    view = infrastructure.infra_cluster_view({}, status=NetworkStatus(network_id="n-1"))

    scope = resource.resource(None, infra_cluster=view)
    deletion = resource.resource_deletion(None, infra_cluster=view)

    assert scope.infra_cluster is deletion.infra_cluster is view
