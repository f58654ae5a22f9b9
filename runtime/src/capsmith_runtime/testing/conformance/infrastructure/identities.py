"""Identities: found, reported, and kept while clusters use them."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import NAMESPACE
from capsmith_runtime.testing.provider import ProviderUnderTest


class IdentityConformance(InfrastructureConformance):
    """Scenarios with each kind of identities."""

    @classmethod
    def selects(cls, identity: IdentityKind) -> bool:
        """Return whether the tests of this class are about the kind."""
        return True

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return only kinds of a provider with identities."""
        return [
            InfrastructureCase(
                provider=provider,
                core_version=version,
                component=component,
                controllers=controllers,
                cluster_kind=cluster_kind,
                machine_kind=machine_kind,
                identity=identity,
            )
            for component, controllers in provider.groups_of(InfrastructureControllers)
            for index, identity in enumerate(controllers.identities)
            if cls.selects(identity)
            for version in provider.core_versions
            # Which of several kinds uses the credentials makes no difference.
            for cluster_kind in [controllers.clusters[index % len(controllers.clusters)]]
            for machine_kind in controllers.machines[:1]
        ]


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
        assert not kind_of(env).refers_to_secret or owners_of(env, secret_of(env))
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


def kind_of(env: InfrastructureEnvironment) -> IdentityKind:
    """Return the kind of identities."""
    assert env.core.identity_kind is not None
    return env.core.identity_kind


def kind_name(env: InfrastructureEnvironment) -> str:
    """Return the name of the kind."""
    return kind_of(env).resource.kind


def identity_of(env: InfrastructureEnvironment) -> JSON:
    """Return the identity that clusters use."""
    (identity,) = env.api.all(kind_name(env))
    return identity


def secret_of(env: InfrastructureEnvironment) -> JSON:
    """Return its Secret."""
    name = identity_of(env)["spec"]["secretRef"]["name"]
    namespace = NAMESPACE if kind_of(env).resource.namespaced else env.component.namespace
    secret = env.api.find("Secret", NamespacedName(namespace, name))
    assert secret is not None
    return secret


def owners_of(env: InfrastructureEnvironment, secret: JSON) -> list[str]:
    """Return the names of the owners of a Secret."""
    found = env.api.find("Secret", key_of(secret))
    assert found is not None
    return [owner["name"] for owner in found["metadata"].get("ownerReferences") or ()]


def copy_of(obj: JSON) -> JSON:
    """Return an object as a user would create it again."""
    gone = ("uid", "resourceVersion", "generation", "ownerReferences")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in gone}
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": metadata}
