"""Identities: which namespaces may use which credentials, and what is reported otherwise."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import NAMESPACE
from capsmith_runtime.testing.objects import condition
from capsmith_runtime.testing.provider import ProviderUnderTest


class TestCredentials(InfrastructureConformance):
    """Identities: which namespaces may use which credentials, and what is reported otherwise."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return only kinds of a provider with identities."""
        return [case for case in super().cases(provider) if case.controllers.identity is not None]

    @scenario
    async def test_an_identity_owns_its_secret_and_is_ready(
        self, env: InfrastructureEnvironment
    ) -> None:
        await env.eventually(
            "it says so", lambda: condition(_identity(env), "Ready") == ("True", "Ready")
        )
        owners = _secret(env)["metadata"]["ownerReferences"]
        assert [(o["kind"], o["uid"]) for o in owners] == [
            (_kind(env), _identity(env)["metadata"]["uid"])
        ]

    @scenario
    async def test_an_identity_lets_go_of_a_secret_that_it_no_longer_names(
        self, env: InfrastructureEnvironment
    ) -> None:
        former, identity = _secret(env), _key(_identity(env))
        await env.eventually("it owns the old one", lambda: _owners(env, former))
        new = _new(former)
        new["metadata"]["name"] = "another"
        env.api.add(new)
        env.api.change(_kind(env), identity, {"spec": {"secretRef": {"name": "another"}}})
        await env.eventually("it owns the new one", lambda: _owners(env, new))
        # Deleting the identity would take along whatever it owns.
        await env.eventually("the old one is free", lambda: not _owners(env, former))

    @scenario
    async def test_an_identity_in_use_is_kept_until_its_clusters_are_gone(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = await env.running_cluster()
        await env.eventually(
            "it is protected", lambda: bool(_identity(env)["metadata"].get("finalizers"))
        )
        env.api.remove(_kind(env), _key(_identity(env)))
        await env.eventually(
            "it says so", lambda: condition(_identity(env), "Ready") == ("False", "Deleting")
        )
        assert _owners(env, _secret(env))
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually("it is gone", lambda: not env.api.all(_kind(env)))
        assert env.is_gone(env.cluster_kind, cluster)

    @scenario
    async def test_an_identity_is_free_after_the_last_cluster(
        self, env: InfrastructureEnvironment
    ) -> None:
        cluster = await env.running_cluster()
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually("it is free", lambda: not _identity(env)["metadata"].get("finalizers"))

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

    @pytest.mark.parametrize("missing", ["identity", "secret", "key"])
    @scenario
    async def test_what_is_missing_is_waited_for(
        self, env: InfrastructureEnvironment, missing: str
    ) -> None:
        identity, secret = _identity(env), _secret(env)
        reasons = {"identity": "IdentityNotFound", "secret": "SecretNotFound"}
        expected = ("False", reasons.get(missing, "SecretIncomplete"))
        await env.quiet()
        _take_away(env, missing)
        cluster = env.core.add_cluster()
        await env.eventually(
            "it says so", lambda: condition(env.core.infra_cluster(cluster), "Ready") == expected
        )
        if missing == "identity":
            env.api.add(_new(identity))
        elif missing == "secret":
            env.api.add(_new(secret))
        else:
            env.api.change("Secret", _key(secret), {"data": secret["data"]})
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


def _kind(env: InfrastructureEnvironment) -> str:
    """Return the kind of identities."""
    assert env.controllers.identity is not None
    return env.controllers.identity.resource.kind


def _identity(env: InfrastructureEnvironment) -> JSON:
    (identity,) = env.api.all(_kind(env))
    return identity


def _secret(env: InfrastructureEnvironment) -> JSON:
    name = _identity(env)["spec"]["secretRef"]["name"]
    secret = env.api.find("Secret", NamespacedName(env.component.namespace, name))
    assert secret is not None
    return secret


def _owners(env: InfrastructureEnvironment, secret: JSON) -> list[str]:
    found = env.api.find("Secret", _key(secret))
    assert found is not None
    return [owner["name"] for owner in found["metadata"].get("ownerReferences") or ()]


def _allow(env: InfrastructureEnvironment, allowed: Any) -> None:
    key = _key(_identity(env))
    env.api.change(_kind(env), key, {"spec": {"allowedNamespaces": None}})
    if allowed is not None:
        env.api.change(_kind(env), key, {"spec": {"allowedNamespaces": allowed}})


def _take_away(env: InfrastructureEnvironment, what: str) -> None:
    secret = _secret(env)
    if what == "identity":
        env.api.remove(_kind(env), _key(_identity(env)))
    elif what == "secret":
        env.api.remove("Secret", _key(secret))
    else:
        empty = {name: base64.b64encode(b"").decode() for name in secret["data"]}
        env.api.change("Secret", _key(secret), {"data": empty})


def _new(obj: JSON) -> JSON:
    gone = ("uid", "resourceVersion", "generation", "ownerReferences")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in gone}
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": metadata}


def _key(obj: JSON) -> NamespacedName:
    return NamespacedName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
