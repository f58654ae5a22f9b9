"""The Ready condition of infrastructure about which a reconcile learned nothing.

A MachineHealthCheck on ``InfrastructureReady`` replaces machines whose condition is False for a
time, so an outage of the infrastructure's API must not look like broken machines.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from capsmith_runtime.infrastructure import (
    DecodingError,
    InfraMachineState,
    ReconcileError,
    TerminalError,
    Terminated,
    Waiting,
)
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.reconcile import author_step
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_pools import Groups, group_environment
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedClusterReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

PROVIDER = scripted_provider.PROVIDER
UP: InfraMachineState = replace(PROVISIONED, requeue_after=0.05)
DOWN: InfraMachineState = replace(UP, ready=False, reason="Stopped")
LIMITED = ReconcileError("RateLimited", "the cloud allows 10 requests", retry_after=1)
TERMINATED = Terminated("ServerNotFound", "acme://1 no longer exists")


class TestMachines(ScriptedMachines):
    """Machines that work, as far as is known."""

    @pytest.mark.parametrize(
        ("result", "reason"),
        [
            (LIMITED, "RateLimited"),
            (OSError("no route to host"), "InternalError"),
            (None, "InvalidResult"),
            (Waiting("Rebooting", requeue_after=0.05), "Rebooting"),
            (replace(UP, provider_id="acme://2"), "ProviderIDChanged"),
        ],
    )
    @scenario
    async def test_a_working_machine_becomes_unknown_until_it_is_seen_again(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, result: object, reason: str
    ) -> None:
        """Proves: IM-03, ST-06."""
        script = normal(UP, result)
        key = await add_machine(env)
        await env.eventually("unknown", lambda: ready_condition(env, key) == ("Unknown", reason))
        assert env.has_machine(key)
        await env.quiet()
        assert ready_condition(env, key) == ("Unknown", reason)
        script.results = [UP]
        await env.eventually("ready", lambda: ready_condition(env, key) == ("True", "Ready"))

    @scenario
    async def test_a_stopped_machine_stays_not_ready_during_an_outage(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """The time of the transition is kept, from which health checks compute."""
        script = normal(UP, DOWN)
        key = await add_machine(env)
        await env.eventually("down", lambda: ready_condition(env, key) == ("False", "Stopped"))
        since = _transition(env, key)
        script.results = [LIMITED]
        await env.eventually("failing", lambda: ready_condition(env, key)[1] == "RateLimited")
        assert ready_condition(env, key)[0] == "False"
        assert _transition(env, key) == since

    @pytest.mark.parametrize("result", [LIMITED, OSError("no route to host")])
    @scenario
    async def test_a_machine_that_was_never_there_is_not_ready(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, result: object
    ) -> None:
        normal(result)
        key = await add_machine(env)
        await env.eventually("reported", lambda: ready_condition(env, key)[0] == "False")

    @scenario
    async def test_a_machine_that_is_being_created_is_not_ready(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Also if its provider id is known already."""
        normal(Waiting("Creating", provider_id="acme://1", requeue_after=0.05))
        key = await add_machine(env)
        creating = ("False", "Creating")
        await env.eventually("creating", lambda: ready_condition(env, key) == creating)

    @scenario
    async def test_a_terminal_answer_about_a_working_machine_makes_it_not_ready(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(UP, TerminalError("DiskBroken", "its disk cannot be read"))
        key = await add_machine(env)
        await env.eventually("given up", lambda: ready_condition(env, key)[0] == "False")
        assert ready_condition(env, key) == ("False", "DiskBroken")

    @scenario
    async def test_missing_credentials_do_not_break_working_machines(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(UP)
        key = await add_machine(env)
        await env.eventually("ready", lambda: ready_condition(env, key) == ("True", "Ready"))
        _empty_credentials(env)
        await env.eventually("unknown", lambda: ready_condition(env, key)[0] == "Unknown")
        (cluster,) = env.api.all("AcmeCluster")
        assert condition(cluster, "Ready")[0] == "Unknown"

    @scenario
    async def test_a_moved_machine_is_unknown_without_credentials(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """`clusterctl move` takes the spec along, but not the status."""
        normal(UP)
        key = await add_machine(env)
        await env.eventually("ready", lambda: ready_condition(env, key) == ("True", "Ready"))
        await env.kill()
        _empty_credentials(env)
        env.api.change("AcmeMachine", key, {"status": None})
        env.start()
        await env.eventually("unknown", lambda: ready_condition(env, key)[0] == "Unknown")

    @scenario
    async def test_an_unreadable_spec_does_not_break_a_working_machine(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def refuse(cls: object, value: object, path: str) -> object:
            raise DecodingError(path, "a size", value)

        normal(UP)
        key = await add_machine(env)
        await env.eventually("ready", lambda: ready_condition(env, key) == ("True", "Ready"))
        monkeypatch.setattr(author_step, "decode", refuse)
        unknown = ("Unknown", "InvalidSpec")
        await env.eventually("unknown", lambda: ready_condition(env, key) == unknown)

    @scenario
    async def test_held_terminations_keep_unknown_machines_unknown(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(lambda scope: replace(UP, provider_id=f"acme://{scope.name}"))
        cluster = await env.running_cluster()
        keys = [env.core.add_machine(cluster, f"m{number}") for number in range(4)]
        await env.eventually("ready", lambda: _are_all(env, keys, ("True", "Ready")))
        script.results = [LIMITED]
        await env.eventually("unknown", lambda: _are_all(env, keys, ("Unknown", "RateLimited")))
        script.results = [TERMINATED]
        held = ("Unknown", "TerminationHeld")
        await env.eventually("held", lambda: _are_all(env, keys, held))

    @scenario
    async def test_a_failed_deletion_is_not_ready(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        normal(UP)
        delete(LIMITED)
        key = await add_machine(env)
        await env.eventually("ready", lambda: ready_condition(env, key) == ("True", "Ready"))
        env.api.remove("AcmeMachine", key)
        failed = ("False", "RateLimited")
        await env.eventually("failed", lambda: ready_condition(env, key) == failed)


class TestClusters(ScriptedMachines):
    """Clusters whose infrastructure works, as far as is known."""

    @scenario
    async def test_a_working_cluster_becomes_unknown(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Proves: IC-05."""

        def fail(self: object, scope: object) -> None:
            raise LIMITED

        key = await env.running_cluster()
        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", fail)
        await env.restart()
        await env.eventually(
            "unknown",
            lambda: condition(env.core.infra_cluster(key), "Ready") == ("Unknown", "RateLimited"),
        )
        assert env.core.provisioned(env.core.infra_cluster(key))


def test_a_working_pool_becomes_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, scope: object) -> None:
        raise LIMITED

    async def scenario() -> None:
        env.add_pool(0)
        ready = ("True", "Ready")
        await env.eventually("ready", lambda: condition(env.infra_pool(), "Ready") == ready)
        monkeypatch.setattr(Groups, "reconcile_normal", fail)
        await env.restart()
        unknown = ("Unknown", "RateLimited")
        await env.eventually("unknown", lambda: condition(env.infra_pool(), "Ready") == unknown)

    env = group_environment()
    env.run(scenario)


def _empty_credentials(env: InfrastructureEnvironment) -> None:
    (secret,) = (each for each in env.api.all("Secret") if "token" in each.get("data", {}))
    env.api.change("Secret", key_of(secret), {"data": {"token": ""}})


def _transition(env: InfrastructureEnvironment, key: NamespacedName) -> object:
    found: list[JSON] = env.core.infra_machine(key)["status"]["conditions"]
    (ready,) = (each for each in found if each["type"] == "Ready")
    return ready["lastTransitionTime"]


def _are_all(
    env: InfrastructureEnvironment, keys: list[NamespacedName], expected: tuple[str, str]
) -> bool:
    return all(ready_condition(env, key) == expected for key in keys)
