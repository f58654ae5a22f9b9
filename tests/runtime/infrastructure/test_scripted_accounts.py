"""Accounts of sessions, recorded on objects and compared before each call, in a running manager."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from capsmith_runtime.infrastructure import (
    Credentials,
    Deleted,
    Endpoint,
    InfraClusterScope,
    InfraClusterState,
    SessionFactory,
    Terminated,
)
from capsmith_runtime.kube.client import NamespacedName, key_of
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    GROUP,
    PROVISIONED,
    ScriptedClusterReconciler,
    ScriptedMachineReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

PROVIDER = scripted_provider.PROVIDER
ANNOTATION = f"{GROUP}/account"


class Accounts(SessionFactory[str]):
    """Sessions are tokens, whose part before the dash is the account."""

    failures: ClassVar[list[Exception]]
    closed: ClassVar[list[str]]

    def open(self, credentials: Credentials) -> str:
        return credentials["token"]

    def account(self, session: str) -> str:
        if self.failures:
            raise self.failures[0]
        return session.partition("-")[0]

    def close(self, session: str) -> None:
        self.closed.append(session)


def _reconcile(self: object, cluster: InfraClusterScope[Any]) -> InfraClusterState:
    cluster.session(Accounts)
    return InfraClusterState(control_plane_endpoint=Endpoint("10.0.0.100", 6443))


class TestAccounts(ScriptedMachines):
    """A session of another account does not touch what exists."""

    @pytest.fixture(autouse=True)
    def sessions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Accounts, "failures", [], raising=False)
        monkeypatch.setattr(Accounts, "closed", [], raising=False)
        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", _reconcile)
        for reconciler in (ScriptedClusterReconciler, ScriptedMachineReconciler):
            monkeypatch.setattr(reconciler, "session_factory", Accounts)

    @scenario
    async def test_the_account_is_recorded_before_the_first_call(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        _change_token(env, "first-a")
        seen: list[str | None] = []

        def look(machine: Any) -> Any:
            seen.append(_recorded(env, NamespacedName(machine.namespace, machine.name)))
            return PROVISIONED

        normal(look)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        assert seen[0] == "first"
        (cluster,) = env.api.all("AcmeCluster")
        assert cluster["metadata"]["annotations"][ANNOTATION] == "first"

    @scenario
    async def test_other_keys_of_the_same_account_go_on(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        _change_token(env, "first-a")
        tokens: list[str] = []

        def look(machine: Any) -> Any:
            tokens.append(machine.session(Accounts))
            return PROVISIONED

        normal(look)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        _change_token(env, "first-b")
        await env.eventually("called", lambda: tokens[-1] == "first-b")
        await env.quiet()
        assert ready_condition(env, key) == ("True", "Ready")

    @scenario
    async def test_a_session_of_another_account_touches_nothing(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        _change_token(env, "first-a")
        normal(_find("first", PROVISIONED, Terminated("ServerNotFound")))
        deletion = delete(_find("first", Deleted(), Deleted()))
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))

        _change_token(env, "second-a")
        refused = ("Unknown", "AccountChanged")
        await env.eventually("refused", lambda: ready_condition(env, key) == refused)
        await env.eventually(
            "refused too", lambda: condition(env.api.all("AcmeCluster")[0], "Ready") == refused
        )
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.quiet()
        assert deletion.calls == []
        assert not env.is_gone(env.machine_kind, key)
        notes = [each["note"] for each in env.api.all("Event") if each["reason"] == refused[1]]
        assert "the infrastructure is in account first" in notes[0]
        assert _recorded(env, key) == "first"

        _change_token(env, "first-b")
        await env.eventually("gone", lambda: env.is_gone(env.machine_kind, key))
        assert len(deletion.calls) == 1

    @scenario
    async def test_an_unknown_account_counts_as_another_one(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        _change_token(env, "-unknown")
        normal(PROVISIONED)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        assert _recorded(env, key) is None
        _change_token(env, "first-a")
        await env.eventually("recorded", lambda: _recorded(env, key) == "first")
        _change_token(env, "-unknown")
        await env.eventually(
            "refused", lambda: ready_condition(env, key) == ("Unknown", "AccountChanged")
        )

    @scenario
    async def test_a_session_whose_account_cannot_be_read_is_closed_and_opened_later(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        Accounts.failures[:] = [RuntimeError("no route")]
        script = normal(PROVISIONED)
        cluster = env.core.add_cluster()
        await env.eventually(
            "reported",
            lambda: condition(env.core.infra_cluster(cluster), "Ready")
            == ("False", "SessionNotOpened"),
        )
        assert script.calls == []
        await env.eventually("closed", lambda: Accounts.closed)
        Accounts.failures.clear()
        await env.eventually("provisioned", lambda: env.has_cluster(cluster))


def _find(account: str, found: Any, missing: Any) -> Callable[[Any], Any]:
    """Return a method whose server is in one account, as the code of most authors searches."""

    def call(machine: Any) -> Any:
        return found if machine.session(Accounts).startswith(f"{account}-") else missing

    return call


def _recorded(env: InfrastructureEnvironment, key: NamespacedName) -> str | None:
    recorded: str | None = env.core.infra_machine(key)["metadata"]["annotations"].get(ANNOTATION)
    return recorded


def _change_token(env: InfrastructureEnvironment, token: str) -> None:
    (secret,) = (each for each in env.api.all("Secret") if "token" in each.get("data", {}))
    value = base64.b64encode(token.encode()).decode()
    env.api.change("Secret", key_of(secret), {"data": {"token": value}})
