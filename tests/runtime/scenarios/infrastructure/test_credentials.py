"""Identities: which namespaces may use which credentials, and what is reported otherwise."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import NamespacedName, key_of
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import NAMESPACE
from tests.runtime.scenarios.infrastructure.identities import (
    IdentityConformance,
    copy_of,
    identity_of,
    kind_name,
    owners_of,
    secret_of,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("acme")


@run_with("acme", "everything", "homelab-v1beta1")
class TestCredentials(IdentityConformance):
    """Identities that refer to a Secret with credentials."""

    @classmethod
    def selects(cls, identity: IdentityKind) -> bool:
        """Return whether identities of the kind refer to a Secret."""
        return identity.refers_to_secret

    @scenario
    async def test_an_identity_with_a_secret_is_ready(self, env: InfrastructureEnvironment) -> None:
        await env.eventually(
            "it says so", lambda: condition(identity_of(env), "Ready") == ("True", "Ready")
        )

    @pytest.mark.parametrize("missing", ["secret", "key"])
    @scenario
    async def test_what_is_missing_is_waited_for(
        self, env: InfrastructureEnvironment, missing: str
    ) -> None:
        secret = secret_of(env)
        expected = ("False", "SecretNotFound" if missing == "secret" else "SecretIncomplete")
        await env.quiet()
        _take_away(env, missing)
        cluster = env.core.add_cluster()
        await env.eventually(
            "it says so", lambda: condition(env.core.infra_cluster(cluster), "Ready") == expected
        )
        if missing == "secret":
            env.api.add(copy_of(secret))
        else:
            env.api.change("Secret", key_of(secret), {"data": secret["data"]})
        await env.eventually("it is there", lambda: env.has_cluster(cluster))


@run_with("acme", "everything", "homelab-v1beta1")
class TestOwnedSecrets(IdentityConformance):
    """Cluster-scoped identities, which own their Secrets."""

    @classmethod
    def selects(cls, identity: IdentityKind) -> bool:
        """Return whether identities of the kind own Secrets."""
        return identity.refers_to_secret and not identity.resource.namespaced

    @scenario
    async def test_an_identity_owns_its_secret(self, env: InfrastructureEnvironment) -> None:
        await env.quiet()
        owners = secret_of(env)["metadata"]["ownerReferences"]
        assert [(o["kind"], o["uid"]) for o in owners] == [
            (kind_name(env), identity_of(env)["metadata"]["uid"])
        ]

    @scenario
    async def test_an_identity_lets_go_of_a_secret_that_it_no_longer_names(
        self, env: InfrastructureEnvironment
    ) -> None:
        former, identity = secret_of(env), key_of(identity_of(env))
        await env.eventually("it owns the old one", lambda: owners_of(env, former))
        new = copy_of(former)
        new["metadata"]["name"] = "another"
        env.api.add(new)
        env.api.change(kind_name(env), identity, {"spec": {"secretRef": {"name": "another"}}})
        await env.eventually("it owns the new one", lambda: owners_of(env, new))
        # Deleting the identity would take along whatever it owns.
        await env.eventually("the old one is free", lambda: not owners_of(env, former))


@run_with("acme", "everything", "homelab-v1beta1")
class TestCredentialsOfNamespaces(IdentityConformance):
    """Cluster-scoped identities: which namespaces may use their credentials."""

    @classmethod
    def selects(cls, identity: IdentityKind) -> bool:
        """Return whether identities of the kind are cluster-scoped."""
        return not identity.resource.namespaced

    @pytest.mark.parametrize(
        "allowed",
        [None, {"list": ["other"]}, {"selector": {"matchLabels": {"team": "other"}}}],
        ids=["no namespace", "others by name", "others by label"],
    )
    @scenario
    async def test_a_namespace_that_is_not_allowed_waits(
        self, env: InfrastructureEnvironment, allowed: Any
    ) -> None:
        _allow(env, allowed)
        cluster = env.core.add_cluster()
        expected = ("False", "IdentityNotAllowed")
        await env.eventually(
            "it says so", lambda: condition(env.core.infra_cluster(cluster), "Ready") == expected
        )
        assert env.infrastructure.clusters() == []

        _allow(env, {"list": [NAMESPACE]})
        await env.eventually("it is there", lambda: env.has_cluster(cluster))

    @scenario
    async def test_a_namespace_may_be_allowed_by_its_labels(
        self, env: InfrastructureEnvironment
    ) -> None:
        _allow(env, {"selector": {"matchLabels": {"team": "ours"}}})
        cluster = env.core.add_cluster()
        await env.quiet()
        assert env.infrastructure.clusters() == []

        labels = {"metadata": {"labels": {"team": "ours"}}}
        env.api.change("Namespace", NamespacedName("", NAMESPACE), labels)
        await env.eventually("it is there", lambda: env.has_cluster(cluster))

    @scenario
    async def test_machines_use_the_identity_of_their_cluster(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = await env.running_cluster()
        await env.quiet()
        _allow(env, None)
        await env.quiet()
        key = env.core.add_machine(cluster)
        expected = ("False", "IdentityNotAllowed")
        await env.eventually(
            "it says so", lambda: condition(env.core.infra_machine(key), "Ready") == expected
        )
        assert env.infrastructure.servers() == []
        # What is there stays provisioned, whatever happens to its credentials later.
        assert env.has_cluster(cluster)

        _allow(env, {})
        await env.eventually("it is there", lambda: env.has_machine(key))


def _allow(env: InfrastructureEnvironment, allowed: Any) -> None:
    key = key_of(identity_of(env))
    env.api.change(kind_name(env), key, {"spec": {"allowedNamespaces": None}})
    if allowed is not None:
        env.api.change(kind_name(env), key, {"spec": {"allowedNamespaces": allowed}})


def _take_away(env: InfrastructureEnvironment, what: str) -> None:
    secret = secret_of(env)
    if what == "secret":
        env.api.remove("Secret", key_of(secret))
    else:
        empty = {name: base64.b64encode(b"").decode() for name in secret["data"]}
        env.api.change("Secret", key_of(secret), {"data": empty})
