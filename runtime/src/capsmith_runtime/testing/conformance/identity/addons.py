"""Add-ons with the credentials of an identity: missing, refused, ended, or of another add-on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from capsmith_runtime.addon.addons import AddonKind
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.reconcile.scopes import SessionScope
from capsmith_runtime.testing.addon.environment import SELECTED, AddonEnvironment, EndsSessions
from capsmith_runtime.testing.conformance.addon.base import AddonConformance
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.faults import NONE, Faults
from capsmith_runtime.testing.identities import (
    copy_first,
    find_identity_kinds,
    has_sessions,
    remove_identity,
)
from capsmith_runtime.testing.provider import ProviderUnderTest, simulate

OTHER = {"addon": "other"}


class AddonIdentityConformance(AddonConformance):
    """Base class for scenarios of add-ons that use identities through sessions."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[AddonKind]]:
        """Return the cases for the kinds that use identities through sessions."""
        return [case for case in super().cases(provider) if has_sessions(case.kind)]


class TestAddonIdentities(AddonIdentityConformance):
    """Identities of add-ons; requires the feature ``credentials`` and a session factory."""

    @pytest.fixture
    def requested(self, monkeypatch: pytest.MonkeyPatch) -> set[str]:
        """Return the names of the add-ons for which a session has been requested."""
        names: set[str] = set()
        session = SessionScope.session

        def record(self: SessionScope, factory: Any) -> Any:
            names.add(self.name)
            return session(self, factory)

        monkeypatch.setattr(SessionScope, "session", record)
        return names

    @scenario
    async def test_an_add_on_without_its_identity_is_not_forgotten(
        self, env: AddonEnvironment
    ) -> None:
        """An add-on that is deleted without its identity leaves nothing on a cluster.

        If the removal needs credentials, do not catch the error that ``session`` raises: the add-on
        then stays until the identity is back.
        """
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        identity = remove_identity(env.api, env.addon(key)["spec"]["identityRef"])
        env.delete(key)
        await env.quiet()
        assert not (env.is_gone(key) and env.on("c1")), "gone before it is removed"

        env.api.add(identity)
        await env.goes(key)
        assert env.on("c1") == []

    @scenario
    async def test_two_identities_are_kept_apart(
        self, env: AddonEnvironment, requested: set[str]
    ) -> None:
        """An add-on uses the session of its own identity, not that of an earlier call.

        What one identity may read is not for the users of another one: request the session in each
        call that needs it, and keep nothing that it has returned for other add-ons.
        """
        env.add_cluster("c1", SELECTED)
        env.add_cluster("c2", OTHER)
        first = env.add_addon("a1")
        await env.installed(first, "c1")
        used = "a1" in requested
        other = copy_first(env.api, env.manifests, find_identity_kinds(env.component))
        second = env.add_addon("a2", {"matchLabels": OTHER}, spec={"identityRef": other})
        await env.eventually("c2 has the other", lambda: _ready(env, second) == {"c2"})
        assert env.on("c2")
        assert ("a2" in requested) is used, "installed with the session of another add-on"


class TestAddonCredentials(AddonIdentityConformance):
    """Credentials that are refused; requires a test double with ``simulate``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[AddonKind]]:
        """Return a case for each kind and core version, or none without ``simulate``."""
        return super().cases(provider) if hasattr(provider.addons, "simulate") else []

    @scenario
    async def test_refused_credentials_are_reported(self, env: AddonEnvironment) -> None:
        """An add-on whose credentials are refused is not ready, until they are accepted."""
        simulate(env.double, Faults(refuse=1.0))
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.eventually("it is reported", lambda: _is_reported(env, key))
        assert env.on("c1") == []
        simulate(env.double, NONE)
        await env.installed(key, "c1")


class TestAddonSessions(AddonIdentityConformance):
    """Sessions that a service ends; requires a test double with ``end_sessions``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[AddonKind]]:
        """Return a case for each kind and core version, or none without ``end_sessions``."""
        return super().cases(provider) if hasattr(provider.addons, "end_sessions") else []

    @scenario
    async def test_a_session_that_has_ended_is_opened_again(self, env: AddonEnvironment) -> None:
        """After the service has ended a session, the add-on gets another one.

        Raise SessionExpiredError if the service refuses a session that it has accepted before.
        """
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.installed(key, "c1")
        assert isinstance(env.double, EndsSessions)
        env.double.end_sessions()
        env.add_cluster("c2", SELECTED)
        await env.installed(key, "c1", "c2")


def _ready(env: AddonEnvironment, key: NamespacedName) -> set[str]:
    return {name for name, (ready, _) in env.clusters(key).items() if ready}


def _is_reported(env: AddonEnvironment, key: NamespacedName) -> bool:
    """Return whether the status has the reason of an error, or a cluster that is ready."""
    return any(
        ready or not (reason == "Pending" or reason.startswith("WaitingFor"))
        for ready, reason in env.clusters(key).values()
    )
