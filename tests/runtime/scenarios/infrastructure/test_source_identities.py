"""Identities that are derived from other identities, such as roles that another one assumes."""

from __future__ import annotations

import base64
from typing import Any, ClassVar

import pytest

from capsmith_runtime.identity.references import MAX_CHAIN
from capsmith_runtime.infrastructure import Credentials, SessionFactory
from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureCase
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.scenarios.infrastructure.identities import (
    IdentityConformance,
    copy_of,
    kind_name,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("acme")
BASE = "NimbusIdentity"
NAME = NamespacedName("", "nimbus")
"""Name of all sample identities."""


class Sessions(SessionFactory[Credentials]):
    """Sessions are the credentials that they are opened with."""

    opened: ClassVar[list[Credentials]]

    def open(self, credentials: Credentials) -> Credentials:
        self.opened.append(credentials)
        return credentials


@run_with("everything")
class TestSourceIdentities(IdentityConformance):
    """Clusters that use a role, which an identity with a Secret assumes."""

    @classmethod
    def selects(cls, identity: IdentityKind) -> bool:
        """Return whether identities of the kind may be derived from others."""
        return bool(identity.sources)

    @pytest.fixture(autouse=True)
    def sessions(self, case: InfrastructureCase, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Sessions, "opened", [], raising=False)
        monkeypatch.setattr(case.cluster_kind.reconciler, "session_factory", Sessions)

    @scenario
    async def test_a_session_is_opened_with_the_whole_chain(
        self, env: InfrastructureEnvironment
    ) -> None:
        _insert_role(env, "middle")
        await env.running_cluster()
        chain = [Sessions.opened[-1]]
        while (source := chain[-1].source) is not None:
            chain.append(source)
        assert [(each.identity_kind, each.identity) for each in chain] == [
            (kind_name(env), "nimbus"),
            (kind_name(env), "middle"),
            (BASE, "nimbus"),
        ]
        assert [sorted(each) for each in chain] == [[], [], ["password", "username"]]

    @pytest.mark.parametrize("what", ["role", "Secret", "reference"])
    @scenario
    async def test_a_change_anywhere_in_the_chain_opens_the_session_again(
        self, env: InfrastructureEnvironment, what: str
    ) -> None:
        _insert_role(env, "middle")
        await env.running_cluster()
        await env.quiet()
        assert len(Sessions.opened) == 1
        middle = NamespacedName("", "middle")
        if what == "role":
            env.api.change(kind_name(env), middle, {"spec": {"role": "another"}})
        elif what == "Secret":
            _change_secret(env, base64.b64encode(b"another").decode())
        else:
            _derive(env, NAME, {"kind": BASE, "name": "nimbus"})
        await env.eventually("the session is open", lambda: len(Sessions.opened) == 2)
        await env.quiet()
        assert len(Sessions.opened) == 2

    @scenario
    async def test_each_identity_of_the_chain_has_to_allow_the_namespace(
        self, env: InfrastructureEnvironment
    ) -> None:
        env.api.change(BASE, NAME, {"spec": {"allowedNamespaces": None}})
        cluster = env.core.add_cluster()
        await _reports(env, cluster, "IdentityNotAllowed")
        message = _message(env.core.infra_cluster(cluster))
        assert "identity nimbus does not allow namespace default" in message
        assert f"source of {kind_name(env)} nimbus" in message
        assert Sessions.opened == []

        env.api.change(BASE, NAME, {"spec": {"allowedNamespaces": {"list": ["default"]}}})
        await env.eventually("it is there", lambda: env.has_cluster(cluster))

    @scenario
    async def test_a_source_that_does_not_exist_is_waited_for(
        self, env: InfrastructureEnvironment
    ) -> None:
        (base,) = env.api.all(BASE)
        env.api.remove(BASE, NAME)
        cluster = env.core.add_cluster()
        await _reports(env, cluster, "IdentityNotFound")
        await env.eventually("the role says so", lambda: _state(env) == "IdentityNotFound")
        env.api.add(copy_of(base))
        await env.eventually("it is there", lambda: env.has_cluster(cluster))
        await env.eventually("the role is ready", lambda: _state(env) == "Ready")

    @scenario
    async def test_another_kind_of_source_is_refused(self, env: InfrastructureEnvironment) -> None:
        _derive(env, NAME, {"kind": "NimbusTenantIdentity", "name": "nimbus"})
        cluster = env.core.add_cluster()
        await _reports(env, cluster, "IdentityNotFound")
        assert "spec.sourceIdentityRef.kind must be" in _message(env.core.infra_cluster(cluster))

    @scenario
    async def test_a_cycle_is_refused_until_it_is_broken(
        self, env: InfrastructureEnvironment
    ) -> None:
        _insert_role(env, "middle")
        role = {"kind": kind_name(env), "name": "nimbus"}
        _derive(env, NamespacedName("", "middle"), role)
        cluster = env.core.add_cluster()
        await _reports(env, cluster, "IdentityChainInvalid")
        await env.eventually("the role says so", lambda: _state(env) == "IdentityChainInvalid")
        assert Sessions.opened == []
        await env.quiet()

        _derive(env, NamespacedName("", "middle"), {"kind": BASE, "name": "nimbus"})
        await env.eventually("it is there", lambda: env.has_cluster(cluster))

    @scenario
    async def test_a_chain_has_a_maximum_length(self, env: InfrastructureEnvironment) -> None:
        for index in range(MAX_CHAIN - 2):
            _insert_role(env, f"role-{index}")
        cluster = env.core.add_cluster()
        await env.eventually("it is there", lambda: env.has_cluster(cluster))

        _insert_role(env, "too-many")
        await env.eventually("it says so", lambda: _state(env) == "IdentityChainInvalid")
        other = env.core.add_cluster("c2")
        await _reports(env, other, "IdentityChainInvalid")

    @scenario
    async def test_sources_in_use_are_kept_until_the_last_user_is_gone(
        self, env: InfrastructureEnvironment
    ) -> None:
        _insert_role(env, "middle")
        (secret,) = (each for each in env.api.all("Secret") if "username" in each["data"])
        cluster = await env.running_cluster()
        middle = NamespacedName("", "middle")
        await env.eventually("it is kept", lambda: _finalizers(env, BASE, NAME))
        key = NamespacedName(secret["metadata"]["namespace"], secret["metadata"]["name"])
        await env.eventually("the Secret is kept", lambda: _finalizers(env, "Secret", key))
        for kind, name in ((BASE, NAME), (kind_name(env), middle), ("Secret", key)):
            env.api.remove(kind, name)
        await env.quiet()
        base = env.api.find(BASE, NAME)
        assert base is not None
        assert condition(base, "Ready") == ("False", "Deleting")
        assert env.api.find(kind_name(env), middle) is not None
        assert env.api.find("Secret", key) is not None

        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually("all is gone", lambda: env.api.find(BASE, NAME) is None)
        await env.eventually("the role too", lambda: env.api.find(kind_name(env), middle) is None)
        await env.eventually("the Secret too", lambda: env.api.find("Secret", key) is None)
        assert env.is_gone(env.cluster_kind, cluster)

    @scenario
    async def test_sources_are_kept_while_a_role_between_them_is_missing(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A user may remove the finalizer of a role, or replace the role."""
        _insert_role(env, "middle")
        (secret,) = (each for each in env.api.all("Secret") if "username" in each["data"])
        cluster = await env.running_cluster()
        middle = NamespacedName("", "middle")
        await env.eventually("it is kept", lambda: _finalizers(env, BASE, NAME))
        await env.quiet()
        role = env.api.find(kind_name(env), middle)
        assert role is not None
        env.api.change(kind_name(env), middle, {"metadata": {"finalizers": None}})
        env.api.remove(kind_name(env), middle)
        key = NamespacedName(secret["metadata"]["namespace"], secret["metadata"]["name"])
        for kind, name in ((BASE, NAME), ("Secret", key)):
            env.api.remove(kind, name)
        await env.quiet()
        assert env.api.find(BASE, NAME) is not None
        assert env.api.find("Secret", key) is not None

        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.quiet()
        env.api.add(copy_of(role))
        await env.eventually("all is gone", lambda: env.api.find(BASE, NAME) is None)
        await env.eventually("the Secret too", lambda: env.api.find("Secret", key) is None)
        assert env.is_gone(env.cluster_kind, cluster)

    @scenario
    async def test_sources_are_kept_while_the_role_of_a_cluster_is_missing(
        self, env: InfrastructureEnvironment
    ) -> None:
        _insert_role(env, "middle")
        (secret,) = (each for each in env.api.all("Secret") if "username" in each["data"])
        cluster = await env.running_cluster()
        await env.running_machine(cluster)
        middle = NamespacedName("", "middle")
        await env.eventually("it is kept", lambda: _finalizers(env, BASE, NAME))
        await env.quiet()
        role = env.api.find(kind_name(env), NAME)
        assert role is not None
        env.api.change(kind_name(env), NAME, {"metadata": {"finalizers": None}})
        env.api.remove(kind_name(env), NAME)
        key = NamespacedName(secret["metadata"]["namespace"], secret["metadata"]["name"])
        sources = ((BASE, NAME), (kind_name(env), middle), ("Secret", key))
        for kind, name in sources:
            env.api.remove(kind, name)
        await env.quiet()
        await env.restart()
        await env.quiet()
        assert [env.api.find(*each) is not None for each in sources] == [True, True, True]

        env.api.add(copy_of(role))
        for each in env.api.all(env.machine_kind.resource.kind):
            env.api.remove("Machine", key_of(each))
            env.api.remove(env.machine_kind.resource.kind, key_of(each))
        env.api.remove(env.cluster_kind.resource.kind, cluster)
        await env.eventually(
            "all is gone", lambda: not any(env.api.find(*each) for each in sources)
        )
        assert env.is_gone(env.cluster_kind, cluster)

    @pytest.mark.parametrize("record", ["Nonsense/nimbus", "nimbus", "/,,Nonsense", "a/b/c"])
    @scenario
    async def test_a_record_that_a_user_has_written_is_replaced(
        self, env: InfrastructureEnvironment, record: str
    ) -> None:
        """It names no identity, or one of an unknown kind."""
        await env.running_cluster()
        await env.quiet()
        group = env.cluster_kind.resource.group
        change = {"metadata": {"annotations": {f"{group}/sources": record}}}
        env.api.change(kind_name(env), NAME, change)
        await env.eventually(
            "it is replaced",
            lambda: _annotation(env, f"{group}/sources") == f"{BASE}/nimbus",
        )

    @scenario
    async def test_a_former_source_is_free(self, env: InfrastructureEnvironment) -> None:
        _insert_role(env, "middle")
        await env.running_cluster()
        middle = NamespacedName("", "middle")
        await env.eventually("it is kept", lambda: _finalizers(env, kind_name(env), middle))
        _derive(env, NAME, {"kind": BASE, "name": "nimbus"})
        await env.eventually("it is free", lambda: not _finalizers(env, kind_name(env), middle))
        assert _finalizers(env, BASE, NAME)


def _insert_role(env: InfrastructureEnvironment, name: str) -> None:
    """Add a role between the role that clusters use and its source."""
    kind = kind_name(env)
    role = env.api.find(kind, NAME)
    assert role is not None
    added = copy_of(role)
    added["metadata"]["name"] = name
    env.api.add(added)
    _derive(env, NAME, {"kind": kind, "name": name})


def _derive(env: InfrastructureEnvironment, identity: NamespacedName, source: JSON) -> None:
    env.api.change(kind_name(env), identity, {"spec": {"sourceIdentityRef": source}})


def _change_secret(env: InfrastructureEnvironment, value: str) -> None:
    (secret,) = (each for each in env.api.all("Secret") if "username" in each["data"])
    metadata = secret["metadata"]
    key = NamespacedName(metadata["namespace"], metadata["name"])
    env.api.change("Secret", key, {"data": {"username": value}})


def _state(env: InfrastructureEnvironment) -> str:
    """Return the reason of the Ready condition of the role that clusters use."""
    role = env.api.find(kind_name(env), NAME)
    assert role is not None
    return condition(role, "Ready")[1]


async def _reports(env: InfrastructureEnvironment, cluster: NamespacedName, reason: str) -> None:
    await env.eventually(
        "it says so",
        lambda: condition(env.core.infra_cluster(cluster), "Ready") == ("False", reason),
    )


def _message(obj: JSON) -> str:
    found: list[Any] = obj["status"]["conditions"]
    (message,) = (each["message"] for each in found if each["type"] == "Ready")
    return str(message)


def _annotation(env: InfrastructureEnvironment, name: str) -> str | None:
    """Return an annotation of the role that clusters use."""
    role = env.api.find(kind_name(env), NAME)
    assert role is not None
    found: str | None = role["metadata"].get("annotations", {}).get(name)
    return found


def _finalizers(env: InfrastructureEnvironment, kind: str, key: NamespacedName) -> list[str]:
    obj = env.api.find(kind, key)
    return list((obj or {}).get("metadata", {}).get("finalizers") or ())
