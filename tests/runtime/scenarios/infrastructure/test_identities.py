"""Identities: found, reported, and kept while clusters use them."""

from __future__ import annotations

from capsmith_runtime.kube.client import key_of
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
