"""Lifecycle of an infrastructure cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from capsmith_runtime.contract import external_id
from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
    check_one_cluster,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest, list_clusters

PAUSED = "cluster.x-k8s.io/paused"
MANAGED_BY = "cluster.x-k8s.io/managed-by"
DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"


class TestInfraCluster(InfrastructureConformance):
    """Lifecycle of an infrastructure cluster."""

    needs_machines = False

    @scenario
    async def test_a_cluster_is_created_and_deleted(self, env: InfrastructureEnvironment) -> None:
        """A cluster gets its finalizer and infrastructure, and its deletion leaves nothing behind.

        Ready is True while the infrastructure exists.

        Proves: IC-10, IC-11, IC-19, IC-20.
        """
        key = await env.running_cluster()
        await env.quiet()
        obj = env.core.infra_cluster(key)
        assert env.shows(obj, "Ready", "True")
        assert obj["metadata"]["finalizers"] == [env.cluster_kind.finalizer]
        check_one_cluster(env.infrastructure)

        env.api.remove(env.cluster_kind.resource.kind, key)
        await env.eventually("it is gone", lambda: env.is_gone(env.cluster_kind, key))
        assert list_clusters(env.infrastructure) == []

    @scenario
    async def test_the_finalizer_comes_before_the_first_side_effect(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Nothing is created in the infrastructure before the finalizer is written.

        The external id is written together with the finalizer.

        Proves: IC-19, SM-08.
        """
        kind = env.cluster_kind.resource
        tried = asyncio.Event()

        def refuse(verb: str, written: str, body: JSON) -> None:
            if written == kind.kind and "finalizers" in body.get("metadata", {}):
                tried.set()
                raise create_api_error(500, "InternalError", "no finalizer for now")

        env.api.fault = refuse
        key = env.core.add_cluster()
        await env.eventually("the finalizer is tried", tried.is_set)
        await env.quiet()
        assert list_clusters(env.infrastructure) == []

        env.api.fault = None
        await env.eventually("it is there", lambda: env.has_cluster(key))
        assert external_id.stored(env.core.infra_cluster(key), kind.group) is not None

    @scenario
    async def test_an_externally_managed_cluster_is_left_alone(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A cluster with the annotation ``managed-by`` is not changed, regardless of its value.

        Proves: IC-15, IC-19.
        """
        await env.stop()
        key = env.core.add_cluster()
        kind = env.cluster_kind.resource.kind
        # The annotation counts, whatever its value (IC-15).
        env.api.change(kind, key, {"metadata": {"annotations": {MANAGED_BY: ""}}})
        env.start()
        await env.quiet()
        assert env.api.written(kind, key) == []
        assert list_clusters(env.infrastructure) == []

    @scenario
    async def test_a_cluster_without_owner_is_left_alone(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A cluster is not changed before core has set its owner.

        Proves: IC-19.
        """
        await env.stop()
        key = env.core.add_cluster()
        kind = env.cluster_kind.resource.kind
        env.api.change(kind, key, {"metadata": {"ownerReferences": None}})
        env.start()
        await env.quiet()
        assert env.api.written(kind, key) == []
        assert list_clusters(env.infrastructure) == []

    @scenario
    async def test_a_cluster_is_deleted_after_its_owner(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A cluster can be deleted even if its Cluster no longer exists.

        Proves: IC-20, SM-08.
        """
        key = await env.running_cluster()
        env.api.remove("Cluster", key)
        env.api.remove(env.cluster_kind.resource.kind, key)
        await env.eventually("it is gone", lambda: env.is_gone(env.cluster_kind, key))
        assert list_clusters(env.infrastructure) == []

    @scenario
    async def test_a_paused_object_is_left_alone(self, env: InfrastructureEnvironment) -> None:
        """A cluster with the paused annotation, whatever its value, only reports that it is paused.

        It is reconciled once the annotation is removed.

        Proves: IC-19, SM-01, ST-08.
        """
        await env.stop()
        key = env.core.add_cluster()
        kind = env.cluster_kind.resource.kind
        env.api.change(kind, key, {"metadata": {"annotations": {PAUSED: "no matter what"}}})
        env.start()
        await env.eventually(
            "it says so",
            lambda: env.shows(env.core.infra_cluster(key), "Paused", "True", "Paused"),
        )
        await env.quiet()
        assert "finalizers" not in env.core.infra_cluster(key)["metadata"]
        assert list_clusters(env.infrastructure) == []

        env.api.change(kind, key, {"metadata": {"annotations": {PAUSED: None}}})
        await env.eventually("it is there", lambda: env.has_cluster(key))
        # In contract v1beta1, conditions are shown only while they are True.
        expected = ("", "") if env.contract == "v1beta1" else ("False", "NotPaused")
        assert env.shows(env.core.infra_cluster(key), "Paused", *expected)


class TestControlPlaneEndpoint(InfrastructureConformance):
    """The endpoint that an infrastructure cluster provides for its control plane."""

    needs_machines = False

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return only the cases whose cluster kind provides an endpoint."""
        found = super().cases(provider)
        return [case for case in found if "controlPlaneEndpoint" in case.cluster_kind.features]

    @scenario
    async def test_an_endpoint_reaches_core_and_a_given_one_is_kept(
        self, env: InfrastructureEnvironment
    ) -> None:
        """The endpoint is written into the spec, unless the user has set another one.

        Proves: IC-02, IC-03.
        """
        first = await env.running_cluster()
        assert env.core.infra_cluster(first)["spec"]["controlPlaneEndpoint"]["host"]

        given = {"host": "given.example.com", "port": 8443}
        await env.stop()
        second = env.core.add_cluster("c2")
        kind = env.cluster_kind.resource.kind
        env.api.change(kind, second, {"spec": {"controlPlaneEndpoint": given}})
        env.start()
        await env.eventually("c2 is there", lambda: env.has_cluster(second))
        assert env.core.infra_cluster(second)["spec"]["controlPlaneEndpoint"] == given


class TestClustersWithoutMachines(InfrastructureConformance):
    """Pauses, moves and crashes in a provider without machines, which must not lose a cluster."""

    needs_machines = False

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return only the cases without machines; those of machines include their cluster."""
        return [case for case in super().cases(provider) if case.machine is None]

    @scenario
    async def test_nothing_is_deleted_while_paused(self, env: InfrastructureEnvironment) -> None:
        """While its Cluster is paused, a deleted object keeps its infrastructure."""
        key = await env.running_cluster()
        env.core.pause(key)
        env.api.remove(env.cluster_kind.resource.kind, key)
        await env.quiet()
        check_one_cluster(env.infrastructure)
        assert env.shows(env.core.infra_cluster(key), "Paused", "True", "Paused")

        env.core.pause(key, False)
        await env.eventually("it is gone", lambda: env.is_gone(env.cluster_kind, key))
        assert list_clusters(env.infrastructure) == []

    @scenario
    async def test_a_move_deletes_no_infrastructure(self, env: InfrastructureEnvironment) -> None:
        """An object that ``clusterctl move`` deletes at the source keeps its infrastructure."""
        key = await env.running_cluster()
        before = list_clusters(env.infrastructure)
        kind = env.cluster_kind.resource.kind
        env.api.change(kind, key, {"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}})
        env.api.remove(kind, key)
        await env.quiet()
        assert list_clusters(env.infrastructure) == before
        assert env.core.infra_cluster(key)["metadata"]["finalizers"]

    @scenario
    async def test_a_crash_before_a_write_duplicates_nothing(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A manager that crashes before it writes the status creates nothing a second time."""
        reached = asyncio.Event()

        def crash(verb: str, kind: str, body: JSON) -> None:
            if (verb, kind) == ("patch_status", env.cluster_kind.resource.kind):
                reached.set()
                raise create_api_error(500, "InternalError", "the answer never came")

        env.api.fault = crash
        key = env.core.add_cluster()
        await env.eventually("the write is tried", reached.is_set)
        await env.kill()
        check_one_cluster(env.infrastructure)
        clusters = list_clusters(env.infrastructure)

        env.api.fault = None
        env.start()
        await env.eventually("it is there", lambda: env.has_cluster(key))
        await env.quiet()
        assert list_clusters(env.infrastructure) == clusters
