"""The client of the scope, in a manager."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.infrastructure import CallEndedError
from capsmith_runtime.kube.client import JSON, Forbidden
from capsmith_runtime.reconcile.permissions import PolicyRule
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachineReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

RULES = (PolicyRule(("",), ("configmaps",), ("create", "get")),)
PROVIDER = replace(
    scripted_provider.PROVIDER,
    components={"infrastructure": replace(scripted_provider.COMPONENT, permissions=RULES)},
)


def _config_map(name: str) -> JSON:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


class TestClient(ScriptedMachines):
    """Requests from threads and from the event loop, and their errors."""

    @pytest.mark.parametrize("asynchronous", [False, True])
    @scenario
    async def test_objects_are_in_the_namespace_of_the_machine(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
        asynchronous: bool,
    ) -> None:
        def create(machine: Any) -> Any:
            machine.client.create(_config_map(machine.name))
            return PROVISIONED

        async def create_async(self: object, machine: Any) -> Any:
            await machine.client.create_async(_config_map(machine.name))
            return PROVISIONED

        normal(create)
        if asynchronous:
            monkeypatch.setattr(ScriptedMachineReconciler, "reconcile_normal", create_async)
        key = await add_machine(env)
        await env.eventually("created", lambda: env.api.find("ConfigMap", key))

    @scenario
    async def test_an_undeclared_request_is_reported_and_not_sent(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(lambda machine: machine.client.get("v1", "Pod", "p"))
        key = await add_machine(env)
        await env.eventually("reported", lambda: ready_condition(env, key)[0] == "False")
        assert ready_condition(env, key) == ("False", "PermissionNotDeclared")
        (message,) = (
            each["message"]
            for each in env.core.infra_machine(key)["status"]["conditions"]
            if each["type"] == "Ready"
        )
        assert 'add {apiGroups: [""], resources: [pods], verbs: [get]} to rbac' in message
        assert not [each for each in env.api.requests if each[1] == "Pod"]

    @scenario
    async def test_an_error_is_reported_and_retried(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        def fail(verb: str, kind: str, body: JSON) -> None:
            if kind == "ConfigMap":
                raise Forbidden(403, "Forbidden", "a policy")

        env.api.fault = fail
        script = normal(lambda machine: machine.client.create(_config_map("a")), PROVISIONED)
        key = await add_machine(env)
        await env.eventually("retried", lambda: env.has_machine(key))
        assert len(script.calls) >= 2
        (event,) = (each for each in env.api.all("Event") if "a policy" in each["note"])
        assert event["reason"] == "KubernetesRequestForbidden"

    @scenario
    async def test_a_workload_client_is_a_feature(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(lambda machine: machine.workload_client.get("v1", "Node", "n"))
        key = await add_machine(env)
        await env.eventually("reported", lambda: ready_condition(env, key)[0] == "False")
        assert ready_condition(env, key) == ("False", "PermissionNotDeclared")

    @scenario
    async def test_a_call_that_timed_out_sends_nothing(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        goes_on, errors = threading.Event(), []

        def late(machine: Any) -> Any:
            goes_on.wait()
            try:
                machine.client.create(_config_map("late"))
            except CallEndedError as error:
                errors.append(error)
            return PROVISIONED

        await env.stop()
        options = replace(env.options(), hook_timeout=0.2)
        monkeypatch.setattr(env, "options", lambda: options)
        env.start()
        normal(late, PROVISIONED)
        key = await add_machine(env)
        await env.eventually("timed out", lambda: ready_condition(env, key)[0] == "False")
        goes_on.set()
        await env.eventually("called again", lambda: env.has_machine(key))
        assert len(errors) == 1
        assert env.api.all("ConfigMap") == []
