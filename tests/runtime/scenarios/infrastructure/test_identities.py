"""Identities: found, reported, and kept while clusters use them."""

from __future__ import annotations

from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.scenarios.infrastructure.identities import (
    IdentityConformance,
    copy_of,
    identity_of,
    kind_name,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("acme")


@run_with("acme", "everything", "homelab-v1beta1")
class TestIdentities(IdentityConformance):
    """Identities of every kind: found, and kept while clusters use them."""

    @scenario
    async def test_an_identity_that_does_not_exist_is_waited_for(
        self, env: InfrastructureEnvironment
    ) -> None:
        identity = identity_of(env)
        env.api.remove(kind_name(env), key_of(identity))
        cluster = env.core.add_cluster()
        expected = ("False", "IdentityNotFound")
        await env.eventually(
            "it says so", lambda: condition(env.core.infra_cluster(cluster), "Ready") == expected
        )
        env.api.add(copy_of(identity))
        await env.eventually("it is there", lambda: env.has_cluster(cluster))

    @scenario
    async def test_an_identity_is_ready(self, env: InfrastructureEnvironment) -> None:
        await env.eventually(
            "it says so", lambda: condition(identity_of(env), "Ready") == ("True", "Ready")
        )

    @scenario
    async def test_an_identity_in_use_is_kept_until_its_clusters_are_gone(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = await env.running_cluster()
        await env.eventually(
            "it is protected", lambda: bool(identity_of(env)["metadata"].get("finalizers"))
        )
        env.api.remove(kind_name(env), key_of(identity_of(env)))
        await env.eventually(
            "it says so", lambda: condition(identity_of(env), "Ready") == ("False", "Deleting")
        )
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually("it is gone", lambda: not env.api.all(kind_name(env)))
        assert env.is_gone(env.cluster_kind, cluster)

    @scenario
    async def test_an_identity_is_free_after_the_last_cluster(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = await env.running_cluster()
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually(
            "it is free", lambda: not identity_of(env)["metadata"].get("finalizers")
        )

    @scenario
    async def test_another_kind_of_identity_is_refused(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = env.core.add_cluster(paused=True)
        reference = {"spec": {"identityRef": {"kind": "Secret"}}}
        env.api.change(env.cluster_kind.resource.kind, cluster, reference)
        env.core.pause(cluster, False)
        expected = ("False", "IdentityNotFound")
        await env.eventually(
            "it says so", lambda: condition(env.core.infra_cluster(cluster), "Ready") == expected
        )
        assert env.infrastructure.clusters() == []


@run_with("acme", "everything", "homelab-v1beta1")
class TestAllowedUsers(IdentityConformance):
    """Only clusters that may use an identity, or have used it, keep it from being deleted."""

    @classmethod
    def selects(cls, identity: IdentityKind) -> bool:
        """Return whether identities of the kind choose the namespaces that may use them."""
        return not identity.resource.namespaced

    @scenario
    async def test_a_cluster_that_is_not_allowed_keeps_no_identity(
        self, env: InfrastructureEnvironment
    ) -> None:
        _allow(env, None)
        cluster = env.core.add_cluster()
        expected = ("False", "IdentityNotAllowed")
        await env.eventually(
            "it says so", lambda: condition(env.core.infra_cluster(cluster), "Ready") == expected
        )
        await env.quiet()
        assert not identity_of(env)["metadata"].get("finalizers")
        env.api.remove(kind_name(env), key_of(identity_of(env)))
        assert not env.api.all(kind_name(env))

    @scenario
    async def test_a_cluster_that_was_allowed_keeps_its_identity(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Its infrastructure could not be deleted without the credentials."""
        cluster = await env.running_cluster()
        machine = await env.running_machine(cluster)
        _allow(env, None)
        await env.quiet()
        await env.restart()
        env.api.remove(kind_name(env), key_of(identity_of(env)))
        await env.quiet()
        assert identity_of(env)["metadata"]["finalizers"]
        _allow(env, {})
        env.api.remove("Machine", machine)
        env.api.remove(env.machine_kind.resource.kind, machine)
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually("it is gone", lambda: not env.api.all(kind_name(env)))
        assert env.is_gone(env.cluster_kind, cluster)

    @scenario
    async def test_a_cluster_of_an_older_release_keeps_its_identity(
        self, env: InfrastructureEnvironment
    ) -> None:
        """It has no record of the identity that it has used."""
        cluster = await env.running_cluster()
        await env.stop()
        group = env.cluster_kind.resource.group
        forgotten: JSON = {
            "spec": {"recorded": {"identity": None, "sources": None}},
            "metadata": {"annotations": {f"{group}/identity": None, f"{group}/sources": None}},
        }
        env.api.change(env.cluster_kind.resource.kind, cluster, forgotten)
        _allow(env, None)
        env.start()
        env.api.remove(kind_name(env), key_of(identity_of(env)))
        await env.quiet()
        assert identity_of(env)["metadata"]["finalizers"]

    @scenario
    async def test_a_running_cluster_keeps_no_identity_that_it_may_not_use(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster, first = await env.running_cluster(), key_of(identity_of(env))
        other = copy_of(identity_of(env))
        other["metadata"]["name"] = "other"
        other["spec"].pop("allowedNamespaces", None)
        env.api.add(other)
        reference = {"identityRef": {"kind": kind_name(env), "name": "other"}}
        env.api.change(env.cluster_kind.resource.kind, cluster, {"spec": reference})
        await env.quiet()
        second = NamespacedName("", "other")
        for key in (first, second):
            env.api.remove(kind_name(env), key)
        await env.quiet()
        assert env.api.find(kind_name(env), second) is None
        # The infrastructure was created with it.
        assert env.api.find(kind_name(env), first) is not None

    @scenario
    async def test_a_namespace_that_is_allowed_later_keeps_the_identity(
        self, env: InfrastructureEnvironment
    ) -> None:
        _allow(env, None)
        cluster = env.core.add_cluster()
        await env.quiet()
        _allow(env, {})
        await env.eventually("it is there", lambda: env.has_cluster(cluster))
        await env.eventually(
            "it is protected", lambda: bool(identity_of(env)["metadata"].get("finalizers"))
        )


def _allow(env: InfrastructureEnvironment, allowed: dict[str, object] | None) -> None:
    change: JSON = {"spec": {"allowedNamespaces": allowed}}
    env.api.change(kind_name(env), key_of(identity_of(env)), change)
