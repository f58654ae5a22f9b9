"""What the controllers do with the results of a machine's reconciler, and what they give it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.infrastructure import (
    Address,
    Condition,
    Deleted,
    InfraMachineScope,
    InfraMachineState,
    Waiting,
)
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import join_command
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachineReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

PROVIDER = scripted_provider.PROVIDER
SOON = 0.05
UP = replace(PROVISIONED, requeue_after=SOON)


@pytest.fixture
def without_logs() -> Iterator[None]:
    """Keep lone surrogates out of what pytest captures: workers of xdist cannot send them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class TestMachineResults(ScriptedMachines):
    """What a result, or an exception, becomes in the object."""

    @scenario
    async def test_trouble_after_the_start_leaves_it_provisioned(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-03, IM-10, ST-06."""
        down = replace(UP, ready=False, reason="PowerLost", message="no power", addresses=[])
        script = normal(UP, down)
        key = await add_machine(env)
        await env.eventually("down", lambda: ready_condition(env, key) == ("False", "PowerLost"))
        obj = env.core.infra_machine(key)
        assert env.core.provisioned(obj)
        assert "addresses" not in obj["status"]

        script.results = [replace(UP, addresses=[Address("InternalIP", "10.0.0.9")])]
        await env.eventually("up", lambda: ready_condition(env, key) == ("True", "Ready"))
        assert env.core.infra_machine(key)["status"]["addresses"][0]["address"] == "10.0.0.9"

    @scenario
    async def test_waiting_after_the_start_leaves_it_provisioned(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-03, ST-06."""
        normal(UP, Waiting("Rebooting", "wait for it", SOON))
        key = await add_machine(env)
        waiting = ("Unknown", "Rebooting")
        await env.eventually("waiting", lambda: ready_condition(env, key) == waiting)
        assert env.has_machine(key)
        assert env.core.infra_machine(key)["status"]["addresses"]

    @scenario
    async def test_a_short_wait_is_not_written(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(Waiting("Booting", "", 0.01), Waiting("Booting", "", 0.01), UP)
        key = await add_machine(env)
        await env.eventually("up", lambda: env.has_machine(key))
        kind = env.machine_kind.resource.kind
        assert env.api.written(kind, key) == ["patch", "patch", "patch_status"]

    @scenario
    async def test_an_exception_is_reported_and_tried_again(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(OSError("the cloud is on fire"))
        key = await add_machine(env)
        expected = ("False", "InternalError")
        await env.eventually("reported", lambda: ready_condition(env, key) == expected)
        assert _ready_message(env, key) == "OSError: the cloud is on fire"
        await env.eventually("an event", lambda: env.api.all("Event"))
        (event,) = env.api.all("Event")
        assert (event["type"], event["reason"]) == ("Warning", "InternalError")
        await env.eventually("again", lambda: len(script.calls) > 1)

        script.results = [UP]
        await env.eventually("up", lambda: ready_condition(env, key) == ("True", "Ready"))

    @pytest.mark.usefixtures("without_logs")
    @scenario
    async def test_an_error_of_any_text_and_length_is_reported(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(ValueError("\ud800" + "long " * 20_000))
        key = await add_machine(env)
        await env.eventually("tried again", lambda: len(script.calls) > 1)
        assert ready_condition(env, key) == ("False", "InternalError")
        message = _ready_message(env, key)
        assert message.encode().startswith(b"ValueError: ?long")
        assert len(message) <= 32768

    @scenario
    async def test_another_provider_id_is_refused(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-01."""
        normal(UP, replace(UP, provider_id="acme://2"))
        key = await add_machine(env)
        expected = ("Unknown", "ProviderIDChanged")
        await env.eventually("refused", lambda: ready_condition(env, key) == expected)
        assert env.core.infra_machine(key)["spec"]["providerID"] == "acme://1"
        assert env.has_machine(key)

    @pytest.mark.parametrize("result", [None, "acme://1", Deleted()])
    @scenario
    async def test_an_invalid_result_is_rejected(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, result: object
    ) -> None:
        normal(result)
        key = await add_machine(env)
        expected = ("False", "InvalidResult")
        await env.eventually("refused", lambda: ready_condition(env, key) == expected)

    @scenario
    async def test_a_state_that_the_schema_refuses_is_reported(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        state = replace(UP)
        object.__setattr__(state, "provider_id", "x" * 600)
        normal(state)
        key = await add_machine(env)
        expected = ("False", "InvalidResult")
        await env.eventually("refused", lambda: ready_condition(env, key) == expected)

    @scenario
    async def test_deletion_may_take_its_time(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        """Proves: IM-25, SM-08, ST-06."""
        normal(UP)
        script = delete(RuntimeError("busy"), Waiting("ShuttingDown", "", SOON))
        key = await add_machine(env)
        await env.eventually("up", lambda: env.has_machine(key))
        env.api.remove(env.machine_kind.resource.kind, key)
        expected = ("False", "ShuttingDown")
        await env.eventually("waiting", lambda: ready_condition(env, key) == expected)
        assert env.has_machine(key)

        script.results = [Deleted()]
        await env.eventually("gone", lambda: env.is_gone(env.machine_kind, key))

    @scenario
    async def test_conditions_of_the_reconciler_are_written(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        own = Condition(type="DisksHealthy", status=None, reason="NotChecked")
        normal(replace(UP, conditions=[own]))
        key = await add_machine(env)
        expected = ("Unknown", "NotChecked")
        await env.eventually(
            "written", lambda: condition(env.core.infra_machine(key), "DisksHealthy") == expected
        )


class TestFailureDomains(ScriptedMachines):
    """Where a machine is, and what follows if its Machine requires another failure domain."""

    @scenario
    async def test_a_machine_in_another_failure_domain_is_reported_there(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """The status has the real failure domain, and one event names both.

        Proves: IM-05, IM-06.
        """
        normal(replace(UP, failure_domain="zone-1"))
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster, failure_domain="zone-2")
        assert ready_condition(env, key) == ("True", "Ready")
        assert env.core.infra_machine(key)["status"]["failureDomain"] == "zone-1"

        # A new manager knows no events: the status shows that this one was sent.
        await env.restart()
        await env.quiet()
        (warning,) = _mismatches(env)
        assert warning["type"] == "Warning"
        assert warning["regarding"]["name"] == key.name
        assert warning["note"] == "it is in failure domain zone-1, but its Machine requires zone-2"

    @scenario
    async def test_a_machine_that_changes_its_failure_domain_is_reported_again(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(replace(UP, failure_domain="zone-2"))
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster, failure_domain="zone-2")
        assert _mismatches(env) == []

        script.results = [replace(UP, failure_domain="zone-3")]
        await env.eventually("an event says so", lambda: len(_mismatches(env)) == 1)
        assert env.core.infra_machine(key)["status"]["failureDomain"] == "zone-3"

    @scenario
    async def test_machines_may_be_anywhere_if_nothing_else_is_required(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Neither a machine that may be anywhere nor one without a failure domain is reported.

        Nor is one whose Machine is changed afterwards: the provider placed it as required.
        """
        script = normal(replace(UP, failure_domain="zone-1"))
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        assert env.core.infra_machine(key)["status"]["failureDomain"] == "zone-1"

        env.api.change("Machine", key, {"spec": {"failureDomain": "zone-2"}})
        calls: list[Any] = script.calls
        await env.eventually("it is seen", lambda: calls[-1].failure_domain == "zone-2")
        script.results = [UP]
        await env.running_machine(cluster, "m2", failure_domain="zone-2")
        assert _mismatches(env) == []


class TestMachineScope(ScriptedMachines):
    """What the reconciler of a machine is called with."""

    @scenario
    async def test_synchronous_code_reads_bootstrap_data(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        received = []

        def reconcile(machine: InfraMachineScope[Any]) -> InfraMachineState:
            received.append(machine.bootstrap_data())
            return UP

        normal(reconcile)
        key = await add_machine(env)
        await env.eventually("up", lambda: env.has_machine(key))
        text = f"#cloud-config\nruncmd: [{join_command(key)}]\n"
        assert (received[0].text, received[0].format) == (text, "cloud-config")

    @scenario
    async def test_asynchronous_code_reads_bootstrap_data(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        received = []

        async def reconcile(self: object, machine: InfraMachineScope[Any]) -> InfraMachineState:
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="_async"):
                machine.bootstrap_data()
            received.append(await machine.bootstrap_data_async())
            return UP

        monkeypatch.setattr(ScriptedMachineReconciler, "reconcile_normal", reconcile)
        key = await add_machine(env)
        await env.eventually("up", lambda: env.has_machine(key))
        assert join_command(key) in received[0].value.decode()

    @scenario
    async def test_missing_bootstrap_data_are_waited_for(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-21."""

        def reconcile(machine: InfraMachineScope[Any]) -> InfraMachineState:
            machine.bootstrap_data()
            return UP

        normal(reconcile)
        cluster = await env.running_cluster()
        key = env.core.add_machine(cluster, bootstrap=False)
        # A machine of a pool names no Secret of its own (IM-21).
        env.api.change("Machine", key, {"spec": {"bootstrap": {"dataSecretName": ""}}})
        expected = ("False", "WaitingForBootstrapData")
        await env.eventually("waiting", lambda: ready_condition(env, key) == expected)

    @scenario
    async def test_the_scope_describes_the_machine_and_its_cluster(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-06."""
        script = normal(UP)
        cluster = await env.running_cluster()
        await env.stop()
        key = env.core.add_machine(cluster)
        labels = {"metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}}}
        env.api.change("Machine", key, {**labels, "spec": {"failureDomain": "zone-2"}})
        env.start()
        await env.eventually("up", lambda: env.has_machine(key))
        scope: Any = script.calls[0]
        assert (scope.name, scope.namespace, scope.provider_id) == (key.name, key.namespace, None)
        assert scope.external_id.startswith(f"{key.name}.")
        assert (scope.failure_domain, scope.is_control_plane) == ("zone-2", True)
        assert (scope.cluster.name, scope.machine.name) == (cluster.name, key.name)
        assert scope.infra_cluster is not None
        assert scope.infra_cluster.name == cluster.name
        assert set(scope.credentials) == {"token"}
        await env.eventually("again", lambda: script.calls[-1].provider_id == "acme://1")

    @scenario
    async def test_a_deletion_after_that_of_the_cluster_has_credentials(
        self, env: InfrastructureEnvironment, delete: ScriptFactory
    ) -> None:
        """Proves: SM-08."""
        script = delete(lambda machine: Deleted() if machine.credentials else Waiting("None"))
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        env.api.remove("Machine", key)
        env.api.remove("Cluster", cluster)
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("gone", lambda: env.is_gone(env.machine_kind, key))
        scope: Any = script.calls[-1]
        assert (scope.cluster, scope.machine) == (None, None)
        assert scope.infra_cluster.name == cluster.name

    @scenario
    async def test_a_cluster_of_another_provider_names_no_identity(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IC-01."""
        script = normal(UP)
        cluster = env.core.add_cluster(infrastructureRef=None)
        env.core.infrastructure_is_ready(cluster)
        key = env.core.add_machine(cluster)
        await env.eventually("up", lambda: env.has_machine(key))
        scope: Any = script.calls[0]
        assert scope.infra_cluster is None
        assert scope.credentials == {}


def _mismatches(env: InfrastructureEnvironment) -> list[Any]:
    return [each for each in env.api.all("Event") if each["reason"] == "FailureDomainMismatch"]


def _ready_message(env: InfrastructureEnvironment, key: Any) -> str:
    conditions = env.core.infra_machine(key)["status"]["conditions"]
    (message,) = (each["message"] for each in conditions if each["type"] == "Ready")
    return str(message)


class TestFullConditions(ScriptedMachines):
    """An object whose status has as many conditions of others as its CRD allows."""

    @scenario
    async def test_it_stops_no_other_and_recovers(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(UP)
        cluster = await env.running_cluster()
        full = await env.running_machine(cluster, "full")
        kind = env.machine_kind.resource.kind
        ready = env.core.infra_machine(full)["status"]["conditions"][0]
        foreign = [{**ready, "type": f"Foreign{number}"} for number in range(32)]
        env.api.change(kind, full, {"status": {"conditions": foreign}})
        await env.eventually("an event", lambda: env.api.all("Event"))
        assert "maxItems" in str(env.api.all("Event")[0])
        script.results = [Waiting("Rebooting", "wait for it", SOON)]
        other = env.core.add_machine(cluster, "other")
        await env.eventually("other", lambda: ready_condition(env, other) == ("False", "Rebooting"))
        assert env.core.infra_machine(full)["status"]["conditions"] == foreign

        env.api.change(kind, full, {"status": {"conditions": foreign[:-2]}})
        waiting = ("Unknown", "Rebooting")
        await env.eventually("recovers", lambda: ready_condition(env, full) == waiting)
        assert len(env.core.infra_machine(full)["status"]["conditions"]) == 32
