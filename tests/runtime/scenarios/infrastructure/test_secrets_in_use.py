"""Secrets of identities in use: kept until the last user is gone, and then free."""

from __future__ import annotations

from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.scenarios.infrastructure.identities import (
    IdentityConformance,
    copy_of,
    identity_of,
    kind_name,
    kind_of,
    owners_of,
    secret_of,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("acme")
MOVE = "clusterctl.cluster.x-k8s.io/move"


@run_with("acme", "everything", "homelab-v1beta1")
class TestSecretsInUse(IdentityConformance):
    """Secrets of identities that clusters and machines use."""

    @classmethod
    def selects(cls, identity: IdentityKind) -> bool:
        """Return whether identities of the kind refer to a Secret."""
        return identity.refers_to_secret

    @scenario
    async def test_a_secret_in_use_is_deleted_after_its_last_user(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = await env.running_cluster()
        machine = await env.running_machine(cluster)
        secret = key_of(secret_of(env))
        # As the deletion of a namespace does.
        env.api.remove("Secret", secret)
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.quiet()
        assert env.api.find("Secret", secret) is not None
        env.api.remove("Machine", machine)
        env.api.remove(env.machine_kind.resource.kind, machine)
        await env.eventually("it is gone", lambda: env.api.find("Secret", secret) is None)
        assert env.is_gone(env.machine_kind, machine)
        assert env.is_gone(env.cluster_kind, cluster)
        assert env.infrastructure.servers() == []

    @scenario
    async def test_a_secret_is_free_without_users(self, env: InfrastructureEnvironment) -> None:
        cluster = await env.running_cluster()
        secret = secret_of(env)
        await env.eventually("it is kept", lambda: _finalizers(env, secret))
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually("it is free", lambda: not _finalizers(env, secret))

    @scenario
    async def test_a_secret_is_free_after_its_identity(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = await env.running_cluster()
        secret, identity = secret_of(env), identity_of(env)
        await env.eventually("it is kept", lambda: _finalizers(env, secret))
        env.api.remove(kind_name(env), key_of(identity))
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually("the identity is gone", lambda: not env.api.all(kind_name(env)))
        assert not _finalizers(env, secret)

    @scenario
    async def test_a_secret_of_two_identities_is_kept_for_either(
        self, env: InfrastructureEnvironment
    ) -> None:
        secret, second = secret_of(env), copy_of(identity_of(env))
        second["metadata"]["name"] = "second"
        env.api.add(second)
        first_cluster = await env.running_cluster()
        reference = {"identityRef": {"name": "second", "kind": kind_name(env)}}
        second_cluster = env.core.add_cluster("c2", paused=True)
        env.api.change(env.cluster_kind.resource.kind, second_cluster, {"spec": reference})
        env.core.pause(second_cluster, False)
        await env.cluster_is_provisioned(second_cluster)
        await env.quiet()
        for cluster in (first_cluster, second_cluster):
            assert _finalizers(env, secret)
            env.api.remove(env.cluster_kind.resource.kind, cluster)
            await env.quiet()
        assert not _finalizers(env, secret)

    @scenario
    async def test_another_secret_takes_the_place_of_the_first(
        self, env: InfrastructureEnvironment
    ) -> None:
        await env.running_cluster()
        former, new = secret_of(env), copy_of(secret_of(env))
        new["metadata"]["name"] = "another"
        env.api.add(new)
        await env.eventually("it is kept", lambda: _finalizers(env, former))
        change = {"spec": {"secretRef": {"name": "another"}}}
        env.api.change(kind_name(env), key_of(identity_of(env)), change)
        await env.eventually("the new one is kept", lambda: _finalizers(env, new))
        await env.eventually("the first one is free", lambda: not _finalizers(env, former))

    @scenario
    async def test_a_namespaced_identity_owns_no_secret(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Earlier releases made it the owner, and the Secret was deleted with it."""
        secret, identity = secret_of(env), identity_of(env)
        await env.stop()
        owner = {
            "apiVersion": identity["apiVersion"],
            "kind": identity["kind"],
            "name": identity["metadata"]["name"],
            "uid": identity["metadata"]["uid"],
        }
        change: JSON = {"metadata": {"ownerReferences": [owner]}}
        env.api.change("Secret", key_of(secret), change)
        env.start()
        await env.quiet()
        is_namespaced = kind_of(env).resource.namespaced
        assert bool(owners_of(env, secret)) is not is_namespaced
        labels = _metadata(env, key_of(secret)).get("labels") or {}
        assert (MOVE in labels) is is_namespaced


def _finalizers(env: InfrastructureEnvironment, secret: JSON) -> list[str]:
    return list(_metadata(env, key_of(secret)).get("finalizers") or ())


def _metadata(env: InfrastructureEnvironment, secret: NamespacedName) -> JSON:
    found = env.api.find("Secret", secret)
    assert found is not None
    metadata: JSON = found["metadata"]
    return metadata
