"""What reconcilers of resources get, and what becomes of their results and errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import pytest

from capsmith_runtime.infrastructure import (
    Deleted,
    InfraClusterDeleteScope,
    ReconcileError,
    TerminalError,
    Waiting,
)
from capsmith_runtime.kube.client import NamespacedName, ResourceType, Selection, WatchEvent
from capsmith_runtime.resource import Owner, ResourceScope, ResourceState
from capsmith_runtime.resource.controllers import ResourceControllers
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.resource.base import ResourceCase, ResourceConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.testing.resource.environment import ResourceEnvironment
from tests.runtime.resource import scripted_resources
from tests.runtime.resource.scripted_resources import (
    CONTROLLERS,
    GROUP,
    IDENTITY,
    IMAGE,
    ClusterReconciler,
    SecurityGroupConformance,
    SecurityGroupStatus,
    script,
)

PROVIDER = scripted_resources.PROVIDER
scripts = scripted_resources.scripts
NEVER = None


class TestSecurityGroups(SecurityGroupConformance):
    """A namespaced kind."""

    @scenario
    async def test_the_scope_of_an_owned_resource(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The chain of owners leads to the Cluster, and credentials are those of the cluster."""
        scopes: list[ResourceScope[Any]] = []

        def normal(scope: ResourceScope[Any]) -> ResourceState:
            scopes.append(scope)
            return ResourceState()

        script(monkeypatch, normal)
        cluster = await env.running_cluster()
        owner = env.core.infra_cluster(cluster)
        env.add(owner)
        await env.is_ready()
        (scope,) = scopes[-1:]
        assert scope.cluster is not None
        assert scope.cluster.name == cluster.name
        uid = owner["metadata"]["uid"]
        assert scope.owners == (
            Owner(group=GROUP, kind=owner["kind"], name=cluster.name, uid=uid, controller=False),
        )
        assert dict(scope.credentials) == {"username": "change-me", "password": "change-me"}
        assert "change-me" not in repr(scope)

    @scenario
    async def test_a_resource_waits_for_an_owner_that_is_not_cached_yet(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Watches have no common order, and the Cluster of the owner is paused during a move.

        Proves: MV-08, SM-01.
        """
        kind, watch, is_late = env.machine_kind.resource.kind, env.api.watch, asyncio.Event()

        async def watch_late(
            resource: ResourceType, selection: Selection, *, resource_version: str
        ) -> AsyncGenerator[WatchEvent, None]:
            events = watch(resource, selection, resource_version=resource_version)
            async with aclosing(events) as stream:
                async for event in stream:
                    if resource.kind == kind:
                        await is_late.wait()
                    yield event

        scopes: list[ResourceScope[Any]] = []

        def normal(scope: ResourceScope[Any]) -> ResourceState:
            scopes.append(scope)
            return ResourceState()

        script(monkeypatch, normal)
        await env.stop()
        monkeypatch.setattr(env.api, "watch", watch_late)
        env.start()
        cluster = await env.running_cluster()
        env.core.pause(cluster)
        await env.quiet()
        env.add(env.core.infra_machine(env.core.add_machine(cluster, "m1")))
        await asyncio.sleep(5)
        assert "finalizers" not in env.resource()["metadata"]
        assert scopes == []

        is_late.set()
        await env.eventually(
            "it is paused", lambda: condition(env.resource(), "Paused")[0] == "True"
        )
        env.core.pause(cluster, False)
        await env.is_ready()
        assert scopes[0].cluster is not None

    @scenario
    async def test_an_owner_reference_of_a_scope_is_complete(
        self, env: ResourceEnvironment
    ) -> None:
        """Proves: RB-04."""
        cluster = await env.running_cluster()
        (scope,) = ClusterReconciler.calls[-1:]
        owner = env.core.infra_cluster(cluster)
        expected = {
            "apiVersion": f"{GROUP}/v1beta1",
            "kind": owner["kind"],
            "name": cluster.name,
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        assert scope.owner_reference() == {**expected, "controller": True}
        assert scope.owner_reference(controller=False) == {**expected, "controller": False}

    @scenario
    async def test_partial_results_are_written_at_once_and_read_again(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def normal(scope: ResourceScope[Any]) -> ResourceState | Waiting:
            known = scope.status(SecurityGroupStatus)
            if known.group_id is None:
                return Waiting("Creating", "", 0.1, status=SecurityGroupStatus(group_id="g-1"))
            return ResourceState(status=known)

        script(monkeypatch, normal)
        env.add()
        await env.is_ready()
        assert env.resource()["status"]["groupID"] == "g-1"

    @scenario
    async def test_errors_are_reported_and_retried(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        results: list[Any] = [ReconcileError("QuotaExceeded", "no group is left"), ResourceState()]

        def normal(scope: ResourceScope[Any]) -> Any:
            result = results.pop(0) if len(results) > 1 else results[0]
            if isinstance(result, Exception):
                raise result
            return result

        script(monkeypatch, normal)
        env.add()
        await env.eventually("reported", lambda: env.ready() == ("False", "QuotaExceeded"))
        await env.is_ready()

    @scenario
    async def test_a_terminal_error_is_not_retried_before_a_change(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[object] = []

        def normal(scope: ResourceScope[Any]) -> ResourceState:
            calls.append(scope)
            raise TerminalError("NotSupported", "no such protocol")

        script(monkeypatch, normal)
        env.add()
        await env.eventually("reported", lambda: env.ready() == ("False", "NotSupported"))
        await env.quiet()
        before = len(calls)
        await asyncio.sleep(60)
        assert len(calls) == before
        assert "failureReason" not in env.resource()["status"]

        script(monkeypatch, lambda scope: ResourceState())
        env.change({"spec": {"rules": []}})
        await env.is_ready()

    @scenario
    async def test_an_owner_waits_in_its_deletion_without_a_timer(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The deletion of the resource wakes its owner."""

        def delete(scope: InfraClusterDeleteScope[Any]) -> Deleted | Waiting:
            return Deleted() if env.found() is None else Waiting("GroupExists", "", NEVER)

        monkeypatch.setattr(ClusterReconciler, "delete", staticmethod(delete))
        cluster = await env.running_cluster()
        env.add(env.core.infra_cluster(cluster))
        await env.is_ready()
        kind = env.cluster_kind.resource.kind
        env.api.remove(kind, cluster)
        await env.eventually(
            "it waits",
            lambda: condition(env.core.infra_cluster(cluster), "Ready") == ("False", "GroupExists"),
        )
        await env.quiet()
        env.delete()
        await env.is_deleted()
        await env.eventually("it is gone", lambda: env.api.find(kind, cluster) is None)

    @scenario
    async def test_an_identity_stays_until_resources_no_longer_use_it(
        self, env: ResourceEnvironment
    ) -> None:
        key = identity_key(env)
        env.add()
        await env.is_ready()
        await env.eventually("it is protected", lambda: protected(env))
        env.api.remove(IDENTITY, key)
        await env.quiet()
        assert env.api.find(IDENTITY, key) is not None
        env.delete()
        await env.is_deleted()
        await env.eventually("it is gone", lambda: env.api.find(IDENTITY, key) is None)

    @scenario
    async def test_it_records_the_identity_of_its_cluster(self, env: ResourceEnvironment) -> None:
        """The infrastructure cluster may be gone when the resource is deleted."""
        cluster = await env.running_cluster()
        env.add(cluster=cluster.name)
        env.change({"spec": {"identityRef": None}})
        await env.is_ready()
        await env.quiet()
        expected = env.core.infra_cluster(cluster)["spec"]["identityRef"]
        assert env.resource()["spec"]["identityRef"] == expected

    @scenario
    async def test_a_spec_that_cannot_be_read_is_reported_and_deleted(
        self, env: ResourceEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        @dataclass(frozen=True, kw_only=True)
        class Newer:
            rules: str

        kind = replace(env.kind, spec=Newer)
        controllers = replace(CONTROLLERS, additional=(ResourceControllers(kinds=(kind,)),))
        env.component = replace(env.component, groups=(controllers,))
        await env.restart()
        env.add()
        await env.eventually("reported", lambda: env.ready() == ("False", "InvalidSpec"))
        env.delete()
        await env.is_deleted()


class TestImages(ResourceConformance):
    """A cluster-scoped kind."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> list[ResourceCase]:
        return [case for case in super().cases(provider) if case.kind.resource.kind == IMAGE]

    @scenario
    async def test_it_needs_an_identity_that_allows_all_namespaces(
        self, env: ResourceEnvironment
    ) -> None:
        key = identity_key(env)
        env.api.change(IDENTITY, key, {"spec": {"allowedNamespaces": {"list": ["default"]}}})
        env.add(cluster="no-cluster")
        refused = ("False", "IdentityNotAllowed")
        await env.eventually("it is refused", lambda: env.ready() == refused)
        env.api.change(IDENTITY, key, {"spec": {"allowedNamespaces": {"list": None}}})
        await env.is_ready()


def identity_key(env: ResourceEnvironment) -> NamespacedName:
    (identity,) = env.api.all(IDENTITY)
    return NamespacedName("", identity["metadata"]["name"])


def protected(env: ResourceEnvironment) -> bool:
    (identity,) = env.api.all(IDENTITY)
    return bool(identity["metadata"].get("finalizers"))
