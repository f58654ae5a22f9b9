"""Pauses, moves, crashes and rejected requests, which must not lose or duplicate a machine."""

from __future__ import annotations

import asyncio

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureConformance,
    check_one_cluster,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import NeedsObjects, list_clusters

OWNED_BY = ("labels", "ownerReferences")
DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"


class TestInfrastructureFaults(InfrastructureConformance):
    """Pauses, moves, crashes and rejected requests, which must not lose or duplicate a machine."""

    @scenario
    async def test_nothing_is_deleted_while_paused(self, env: InfrastructureEnvironment) -> None:
        """While their Cluster is paused, deleted objects keep their infrastructure.

        The infrastructure is deleted after the pause.

        Proves: IC-23, SM-01, SM-02, ST-08.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        env.core.pause(cluster)
        env.api.remove(env.machine_kind.resource.kind, key)
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.quiet()
        assert len(env.infrastructure.servers()) == 1
        check_one_cluster(env.infrastructure)
        assert env.shows(env.core.infra_machine(key), "Paused", "True", "Paused")

        env.core.pause(cluster, False)
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, key))
        assert env.infrastructure.servers() == []

    @scenario
    async def test_a_move_keeps_what_exists(self, env: InfrastructureEnvironment) -> None:
        """``clusterctl move`` neither deletes nor duplicates servers; provider ids stay.

        Proves: MV-08, SM-01, SM-09, ST-11.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        before = env.infrastructure.servers(), list_clusters(env.infrastructure)
        provider_id = env.core.infra_machine(key)["spec"]["providerID"]

        env.core.pause(cluster)
        await env.quiet()
        copies = [_copy(obj) for obj in _objects(env, cluster, key)]
        _delete_as_clusterctl_does(env, cluster, key)
        await env.quiet()
        assert (env.infrastructure.servers(), list_clusters(env.infrastructure)) == before

        # The target is another management cluster: other UIDs, no status, another manager.
        await env.stop()
        owners: dict[str, JSON] = {}
        for obj in copies:
            for reference in obj["metadata"].get("ownerReferences", ()):
                reference["uid"] = owners[reference["kind"]]["metadata"]["uid"]
            owners[obj["kind"]] = env.api.add(obj)
        env.start()
        await env.quiet()
        env.core.pause(cluster, False)
        await env.eventually("it is there", lambda: env.has_cluster(cluster))
        env.core.infrastructure_is_ready(cluster)
        await env.eventually("it is there", lambda: env.has_machine(key))
        await env.quiet()
        assert (env.infrastructure.servers(), list_clusters(env.infrastructure)) == before
        assert env.core.infra_machine(key)["spec"]["providerID"] == provider_id

    @scenario
    async def test_a_move_deletes_no_infrastructure(self, env: InfrastructureEnvironment) -> None:
        """Objects that ``clusterctl move`` deletes at the source keep their infrastructure.

        The annotation alone prevents any change, even if the pause has not been observed.

        Proves: MV-08.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        before = env.infrastructure.servers(), list_clusters(env.infrastructure)
        for kind, name in (
            (env.machine_kind.resource.kind, key),
            (env.cluster_kind.resource.kind, cluster),
        ):
            env.api.change(kind, name, {"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}})
            env.api.remove(kind, name)
        await env.quiet()
        assert (env.infrastructure.servers(), list_clusters(env.infrastructure)) == before
        assert env.core.infra_machine(key)["metadata"]["finalizers"]
        assert env.core.infra_cluster(cluster)["metadata"]["finalizers"]

    @pytest.mark.parametrize("lost", ["patch", "patch_status"])
    @scenario
    async def test_a_crash_before_a_write_duplicates_nothing(
        self, env: InfrastructureEnvironment, lost: str
    ) -> None:
        """A manager that crashes before it writes a provider id or status creates no second server.

        Proves: SM-09.
        """
        cluster = await env.running_cluster()
        reached = asyncio.Event()

        def crash(verb: str, kind: str, body: JSON) -> None:
            if kind != env.machine_kind.resource.kind or verb != lost or "metadata" in body:
                return
            # A status that says only what a machine waits for may precede its server.
            if verb == "patch" or env.infrastructure.servers():
                reached.set()
                raise create_api_error(500, "InternalError", "the answer never came")

        env.api.fault = crash
        key = env.core.add_machine(cluster)
        await env.eventually("the write is tried", reached.is_set)
        await env.kill()
        servers = env.infrastructure.servers()
        # A host of an inventory has an id before it runs.
        is_claimed = isinstance(env.infrastructure, NeedsObjects)
        assert len(servers) == 1 or (
            is_claimed and not servers
        ), "the machine was not created before its provider id is written"

        env.api.fault = None
        env.start()
        await env.eventually("it is there", lambda: env.has_machine(key))
        after = env.infrastructure.servers()
        assert len(after) == 1
        assert set(servers) <= set(after), "another machine was created"

    @scenario
    async def test_other_writers_are_no_trouble(self, env: InfrastructureEnvironment) -> None:
        cluster = await env.running_cluster()
        refused = 0

        def refuse(verb: str, kind: str, body: JSON) -> None:
            nonlocal refused
            if kind == env.machine_kind.resource.kind and refused < 4:
                refused += 1
                raise create_api_error(409, "Conflict", "another client was faster")

        env.api.fault = refuse
        key = env.core.add_machine(cluster)
        await env.eventually("it is there", lambda: env.has_machine(key))
        assert refused == 4
        assert len(env.infrastructure.servers()) == 1

    @scenario
    async def test_many_reconciles_at_once_duplicate_nothing(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A burst of changes to a machine still results in only one server.

        Proves: SM-09.
        """
        cluster = await env.running_cluster()
        key = env.core.add_machine(cluster)
        for number in range(30):
            labels = {"metadata": {"labels": {"example.com/round": str(number)}}}
            env.api.change(env.machine_kind.resource.kind, key, labels)
            env.api.change("Machine", key, labels)
            await asyncio.sleep(0.005)
        await env.eventually("it is there", lambda: env.has_machine(key))
        await env.quiet()
        assert len(env.infrastructure.servers()) == 1

    @scenario
    async def test_a_machine_says_that_its_infrastructure_cluster_is_missing(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = await env.running_cluster()
        await env.quiet()
        kind, lost = env.cluster_kind.resource.kind, env.core.infra_cluster(cluster)
        env.api.change(kind, cluster, {"metadata": {"finalizers": None}})
        env.api.remove(kind, cluster)
        key = env.core.add_machine(cluster)
        expected = ("False", "WaitingForClusterInfrastructureReady")
        await env.eventually(
            "it says so", lambda: env.shows(env.core.infra_machine(key), "Ready", *expected)
        )

        # It is created again as core creates it: the owner reference follows later.
        owners = {"metadata": {name: lost["metadata"].pop(name) for name in OWNED_BY}}
        env.api.add(lost)
        await env.quiet()
        env.api.change(kind, cluster, owners)
        await env.eventually("it is there", lambda: env.has_machine(key))


def _objects(
    env: InfrastructureEnvironment, cluster: NamespacedName, key: NamespacedName
) -> list[JSON]:
    """Return the cluster's objects, owners first."""
    found = (
        env.api.find("Cluster", cluster),
        env.core.infra_cluster(cluster),
        env.api.find("Machine", key),
        env.core.infra_machine(key),
    )
    return [obj for obj in found if obj is not None]


def _copy(obj: JSON) -> JSON:
    """Return the object that clusterctl creates in the target cluster (MV-07)."""
    gone = ("uid", "resourceVersion", "generation", "finalizers")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in gone}
    rest = {name: value for name, value in obj.items() if name != "status"}
    # clusterctl keeps finalizers; the provider has to cope with either.
    metadata["finalizers"] = obj["metadata"].get("finalizers") or []
    return {**rest, "metadata": metadata}


def _delete_as_clusterctl_does(
    env: InfrastructureEnvironment, cluster: NamespacedName, key: NamespacedName
) -> None:
    """Set only the annotation of a move, delete the objects, then remove finalizers (MV-07)."""
    for kind, name in (
        (env.machine_kind.resource.kind, key),
        ("Machine", key),
        (env.cluster_kind.resource.kind, cluster),
        ("Cluster", cluster),
    ):
        obj = env.api.find(kind, name)
        assert obj is not None
        others = dict.fromkeys(obj["metadata"].get("annotations") or {})
        marks = {"metadata": {"annotations": {**others, DELETE_FOR_MOVE: ""}}}
        env.api.change(kind, name, marks)
        env.api.remove(kind, name)
        if env.api.find(kind, name) is not None:
            env.api.change(kind, name, {"metadata": {"finalizers": None}})
