"""Lifecycle of a resource, which needs no Cluster."""

from __future__ import annotations

from capsmith_runtime.contract.external_id import annotation
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.resource.base import ResourceConformance
from capsmith_runtime.testing.resource.environment import BaseResourceEnvironment

PAUSED = "cluster.x-k8s.io/paused"
DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"


class TestResources(ResourceConformance):
    """Lifecycle of a resource, which needs no Cluster."""

    @scenario
    async def test_a_resource_is_created_and_deleted(self, env: BaseResourceEnvironment) -> None:
        """A resource gets its finalizer, external id and infrastructure; its deletion removes both.

        Proves: SM-08.
        """
        env.add()
        await env.is_ready()
        await env.quiet()
        obj = env.resource()
        assert obj["metadata"]["finalizers"] == [env.kind.finalizer]
        assert annotation(env.kind.resource.group) in obj["metadata"]["annotations"]
        env.check_created()

        env.delete()
        await env.is_deleted()
        assert env.existing() == []

    @scenario
    async def test_a_status_that_is_lost_is_written_again(
        self, env: BaseResourceEnvironment
    ) -> None:
        """A status that was lost is written again, and the infrastructure stays the same.

        Proves: ST-11.
        """
        env.add()
        await env.is_ready()
        await env.quiet()
        before, existing = env.resource().get("status", {}), env.existing()
        env.change({"status": None})
        await env.is_ready()
        await env.quiet()
        now = env.resource().get("status") or {}
        assert {**now, "conditions": ()} == {**before, "conditions": ()}
        assert env.existing() == existing

    @scenario
    async def test_an_unchanged_resource_costs_no_requests(
        self, env: BaseResourceEnvironment
    ) -> None:
        """Reconciling a resource that is up to date sends no writes.

        Proves: ST-06.
        """
        env.add()
        await env.is_ready()
        await env.quiet()
        kind = env.kind.resource.kind
        before = env.api.written(kind, env.key)
        env.change({"metadata": {"labels": {"example.com/team": "a"}}})
        await env.quiet()
        assert env.api.written(kind, env.key) == before

    @scenario
    async def test_a_paused_resource_is_left_alone(self, env: BaseResourceEnvironment) -> None:
        """A resource with the paused annotation is neither created nor deleted.

        Proves: SM-01, ST-08.
        """
        env.add(annotations={PAUSED: ""})
        paused = ("True", "Paused")
        await env.eventually("it says so", lambda: env.shows(env.resource(), "Paused", *paused))
        await env.quiet()
        assert "finalizers" not in env.resource()["metadata"]
        assert env.existing() == []

        env.change({"metadata": {"annotations": {PAUSED: None}}})
        await env.is_ready()
        env.change({"metadata": {"annotations": {PAUSED: ""}}})
        await env.quiet()
        env.delete()
        await env.quiet()
        env.check_created()

        env.change({"metadata": {"annotations": {PAUSED: None}}})
        await env.is_deleted()
        assert env.existing() == []

    @scenario
    async def test_a_copy_that_a_move_deletes_deletes_nothing(
        self, env: BaseResourceEnvironment
    ) -> None:
        """When ``clusterctl move`` deletes a resource, its infrastructure stays.

        Proves: MV-08.
        """
        env.add()
        await env.is_ready()
        await env.quiet()
        # clusterctl replaces all annotations.
        others = dict.fromkeys(env.resource()["metadata"]["annotations"])
        env.change({"metadata": {"annotations": {**others, DELETE_FOR_MOVE: ""}}})
        env.delete()
        await env.quiet()
        assert env.resource()["metadata"]["finalizers"], "clusterctl removes the finalizer"
        env.check_created()

    @scenario
    async def test_a_moved_resource_finds_what_exists(self, env: BaseResourceEnvironment) -> None:
        """After a move, a resource finds its existing infrastructure.

        The move drops the status and changes the UID.

        Proves: SM-09, ST-11.
        """
        env.add()
        await env.is_ready()
        await env.quiet()
        await env.stop()
        existing, moved = env.existing(), env.resource()
        env.change({"metadata": {"finalizers": None}})
        env.delete()
        moved.pop("status", None)
        env.api.add(moved)
        env.start()
        await env.is_ready()
        await env.quiet()
        assert env.resource()["metadata"]["uid"] != moved["metadata"]["uid"]
        assert env.existing() == existing
