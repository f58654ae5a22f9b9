"""Sessions of reconcilers, in a running manager."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from capsmith_runtime.contract.external_id import shorten
from capsmith_runtime.infrastructure import (
    Changes,
    Credentials,
    Deleted,
    Endpoint,
    InfraClusterScope,
    InfraClusterState,
    InfraMachineState,
    ReconcileError,
    SessionFactory,
)
from capsmith_runtime.kube.client import key_of
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.manager import Manager
from capsmith_runtime.testing import infrastructure as testing
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    AcmeMachineSpec,
    ScriptedClusterReconciler,
    ScriptedMachineReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

PROVIDER = scripted_provider.PROVIDER


class Client:
    """A client of the infrastructure, which knows whether it is open."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.is_open = True


class Clients(SessionFactory[Client]):
    """Opens clients, or fails; each test gets lists of its own."""

    opened: ClassVar[list[Client]]
    errors: ClassVar[list[Exception]]
    answers: ClassVar[list[Exception | None]]

    def open(self, credentials: Credentials) -> Client:
        if self.errors:
            raise self.errors[0]
        self.opened.append(Client(credentials["token"]))
        return self.opened[-1]

    def close(self, session: Client) -> None:
        session.is_open = False

    def readyz(self) -> None:
        if self.answers[0] is not None:
            raise self.answers[0]


class OtherClients(Clients):
    """A factory that no reconciler names."""


def _reconcile(self: object, cluster: InfraClusterScope[Any]) -> InfraClusterState:
    assert cluster.session(Clients).is_open
    return InfraClusterState(control_plane_endpoint=Endpoint("10.0.0.100", 6443))


class TestSessions(ScriptedMachines):
    """Clusters and machines share the session of their identity."""

    @pytest.fixture(autouse=True)
    def sessions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("opened", "errors"):
            monkeypatch.setattr(Clients, name, [], raising=False)
        monkeypatch.setattr(Clients, "answers", [None], raising=False)
        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", _reconcile)
        for reconciler in (ScriptedClusterReconciler, ScriptedMachineReconciler):
            monkeypatch.setattr(reconciler, "session_factory", Clients)

    @scenario
    async def test_clusters_and_machines_share_one_session(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        used: list[Client] = []
        normal(_use(used, PROVISIONED))
        delete(_use(used, Deleted()))
        cluster = await env.running_cluster()
        keys = [env.core.add_machine(cluster, f"m{number}") for number in range(20)]
        await env.eventually("provisioned", lambda: all(env.has_machine(key) for key in keys))
        env.api.remove(env.machine_kind.resource.kind, keys[0])
        await env.eventually("gone", lambda: env.is_gone(env.machine_kind, keys[0]))
        assert len(used) >= 21
        assert len(Clients.opened) == 1
        assert all(client is Clients.opened[0] for client in used)
        await env.stop()
        assert not Clients.opened[0].is_open

    @pytest.mark.parametrize("id", ["external_id", "short_id", "provider_id"])
    @scenario
    async def test_a_reported_change_calls_the_reconciler(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
        id: str,
    ) -> None:
        watching: list[Changes] = []

        async def watch(self: Clients, session: Client, changes: Changes) -> None:
            watching.append(changes)
            await asyncio.Event().wait()

        monkeypatch.setattr(Clients, "watch", watch)
        script = normal(PROVISIONED)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        await env.quiet()
        calls = len(script.calls)
        external_id = script.calls[-1].external_id
        ids = {
            "external_id": external_id,
            "short_id": shorten(external_id),
            "provider_id": PROVISIONED.provider_id,
        }
        watching[0].report(**{id: ids[id]})
        watching[0].report(**{id: "another"})
        await env.quiet()
        assert len(script.calls) == calls + 1

    @scenario
    async def test_a_changed_secret_renews_the_session(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        used: list[Client] = []
        normal(_use(used, PROVISIONED))
        await add_machine(env)
        await env.eventually("used", lambda: used)
        await env.quiet()
        _change_secret(env, "changed")
        await env.eventually("used again", lambda: used[-1].token == "changed")
        await env.eventually("closed", lambda: not Clients.opened[0].is_open)
        assert len(Clients.opened) == 2

    @scenario
    async def test_a_session_that_cannot_be_opened_is_reported_and_opened_later(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        Clients.errors[:] = [ReconcileError("AccountLocked", "call the support")]
        script = normal(PROVISIONED)
        cluster = env.core.add_cluster()
        await env.eventually(
            "reported",
            lambda: condition(env.core.infra_cluster(cluster), "Ready")
            == ("False", "AccountLocked"),
        )
        assert script.calls == []
        Clients.errors.clear()
        await env.eventually("provisioned", lambda: env.has_cluster(cluster))

    @scenario
    async def test_new_credentials_are_used_at_once(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        Clients.errors[:] = [ReconcileError("AccountLocked", retry_after=10000)]
        cluster = env.core.add_cluster()
        await env.eventually(
            "reported",
            lambda: condition(env.core.infra_cluster(cluster), "Ready")[1] == "AccountLocked",
        )
        await env.quiet()
        Clients.errors.clear()
        _change_secret(env, "unlocked")
        await env.eventually("provisioned", lambda: env.has_cluster(cluster))

    @scenario
    async def test_a_deletion_that_needs_no_session_ends_without_one(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        normal(PROVISIONED)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        delete(_use([], Deleted()))
        Clients.errors[:] = [RuntimeError("no route")]
        _change_secret(env, "changed")
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually(
            "reported", lambda: ready_condition(env, key) == ("False", "SessionNotOpened")
        )
        delete(Deleted())
        await env.eventually("gone", lambda: env.is_gone(env.machine_kind, key))

    @scenario
    async def test_a_session_of_another_factory_is_a_mistake(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, caplog: Any
    ) -> None:
        normal(lambda machine: machine.session(OtherClients))
        key = await add_machine(env)
        await env.eventually(
            "reported", lambda: ready_condition(env, key) == ("False", "InternalError")
        )
        message = "session_factory of the reconciler is Clients: set it to OtherClients"
        conditions = env.core.infra_machine(key)["status"]["conditions"]
        assert any(message in each["message"] for each in conditions)

    @scenario
    async def test_a_call_that_hangs_keeps_its_session(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        await env.stop()
        env.start(hook_timeout=0.05)
        end = threading.Event()
        used: list[Client] = []

        def hang(machine: Any) -> Any:
            used.append(machine.session(Clients))
            end.wait(60)
            used.append(machine.session(Clients))
            return PROVISIONED

        script = normal(hang, PROVISIONED)
        key = await add_machine(env)
        await env.eventually("called", lambda: used)
        await env.eventually("timed out", lambda: ready_condition(env, key)[0] == "False")
        _change_secret(env, "changed")
        await env.eventually("renewed", lambda: len(Clients.opened) > 1)
        assert used[0].is_open
        end.set()
        await env.eventually("repeated", lambda: len(script.calls) > 1)
        await env.eventually("closed", lambda: not used[0].is_open)
        assert used[0] is used[1]

    @scenario
    async def test_readyz_shows_the_check_of_the_factory(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await env.stop()
        checks: dict[str, Callable[[], bool]] = {}
        monkeypatch.setattr(Manager, "_finish", _keep_checks(Manager._finish, checks))
        env.start()
        await env.running_cluster()
        Clients.answers[0] = RuntimeError("no route")
        await asyncio.sleep(11)
        await env.stop()
        failed = {name for name, check in checks.items() if not check()}
        assert failed - {"shutdown", "webhook"} == {"Clients"}, "a manager that stops is not ready"


def _keep_checks(finish: Any, checks: dict[str, Callable[[], bool]]) -> Any:
    async def keep(manager: Manager) -> Any:
        checks.update(manager._checks)
        return await finish(manager)

    return keep


def _use(used: list[Client], result: Any) -> Callable[[Any], Any]:
    def call(machine: Any) -> Any:
        session = machine.session(Clients)
        assert session.is_open
        used.append(session)
        if isinstance(result, InfraMachineState):
            return replace(result, provider_id=f"acme://{machine.name}")
        return result

    return call


def _change_secret(env: InfrastructureEnvironment, token: str) -> None:
    (secret,) = (each for each in env.api.all("Secret") if "token" in each.get("data", {}))
    value = base64.b64encode(token.encode()).decode()
    env.api.change("Secret", key_of(secret), {"data": {"token": value}})


def test_unit_tests_pass_a_session_of_their_own() -> None:
    spec = AcmeMachineSpec(size="small", image="ubuntu")
    double = object()
    for scope in (
        testing.infra_machine(spec, session=double),
        testing.infra_machine_deletion(spec, session=double),
        testing.infra_cluster(spec, session=double),
        testing.infra_cluster_deletion(spec, session=double),
    ):
        assert scope.session(Clients) is double
    with pytest.raises(TypeError, match="session_factory of the reconciler is None"):
        testing.infra_machine(spec).session(Clients)


def test_a_factory_of_another_type_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from capsmith_runtime.reconcile.session_pools import SessionPools

    monkeypatch.setattr(ScriptedMachineReconciler, "session_factory", {"a": 1})
    with pytest.raises(TypeError, match="must be a SessionFactory class"):
        SessionPools(HandlerExecutor(Metrics())).of(ScriptedMachineReconciler())
