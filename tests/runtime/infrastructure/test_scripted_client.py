"""The client of the scope, in a manager."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.infrastructure import CallEndedError
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.permissions import PolicyRule
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    GROUP,
    PROVISIONED,
    ScriptedMachineReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

RECORD = NamespacedName("default", "record")
APPLIED_FOR = f"{GROUP}/applied-for"
EXTERNAL_ID = f"{GROUP}/external-id"
RULES = (PolicyRule(("",), ("configmaps",), ("create", "get", "patch")),)
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
                raise create_api_error(403, "Forbidden", "a policy")

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


class TestApply(ScriptedMachines):
    """A server-side apply takes over no object that others have created."""

    @scenario
    async def test_an_object_of_the_user_is_refused_and_stays_as_it_is(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        env.api.add(_of_user(env))
        normal(_apply("1"))
        key = await add_machine(env)
        expected = ("False", "KubernetesAlreadyExists")
        await env.eventually("refused", lambda: ready_condition(env, key) == expected)
        text = str(env.core.infra_machine(key)["status"])
        assert "AcmeMachine m1" in text
        assert "infrastructure-acme" in text
        assert "adopt=True" in text
        assert _data(env) == {"size": "user"}

    @scenario
    async def test_an_object_that_was_applied_is_changed(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(_apply("1"), _apply("2"))
        key = await add_machine(env)
        await env.eventually("created", lambda: _data(env) == {"size": "1"})
        await env.restart()
        await env.eventually("changed", lambda: _data(env) == {"size": "2"})
        await env.eventually("ready", lambda: ready_condition(env, key) == ("True", "Ready"))

    @scenario
    async def test_an_object_that_the_machine_owns_is_changed(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        def own(machine: Any) -> Any:
            mine = _of_user(env)
            mine["metadata"]["ownerReferences"] = [machine.owner_reference()]
            env.api.add(mine)
            return _apply("1")(machine)

        normal(own, _apply("1"))
        await add_machine(env)
        await env.eventually("changed", lambda: _data(env) == {"size": "1"})

    @scenario
    async def test_an_object_is_adopted(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        env.api.add(_of_user(env))
        normal(_apply("1", adopt=True), _apply("2"))
        await add_machine(env)
        await env.eventually("adopted", lambda: _data(env) == {"size": "1"})
        await env.restart()
        await env.eventually("changed", lambda: _data(env) == {"size": "2"})

    @scenario
    async def test_an_object_that_a_backup_restored_is_changed(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Velero restores no owners, and field managers in a request of their own."""
        normal(_apply("1"), _apply("2"))
        key = await add_machine(env)
        await env.eventually("created", lambda: _data(env) == {"size": "1"})
        await env.stop()
        _restore(env)
        env.start()
        await env.eventually("changed", lambda: _data(env) == {"size": "2"})
        await env.eventually("ready", lambda: ready_condition(env, key) == ("True", "Ready"))

    @pytest.mark.parametrize("claim", ["other object", "controller"])
    @scenario
    async def test_a_restored_object_of_another_owner_is_refused(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, claim: str
    ) -> None:
        normal(_apply("1"), _apply("2"))
        key = await add_machine(env)
        await env.eventually("created", lambda: _data(env) == {"size": "1"})
        await env.stop()
        if claim == "other object":
            _restore(env, annotations={APPLIED_FOR: "AcmeMachine/other.0"})
        else:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "0"}
            _restore(env, ownerReferences=[{**owner, "controller": True}])
        env.start()
        expected = ("Unknown", "KubernetesAlreadyExists")
        await env.eventually("refused", lambda: ready_condition(env, key) == expected)
        assert _data(env) == {"size": "1"}
        text = str(env.core.infra_machine(key)["status"])
        external_id = env.core.infra_machine(key)["metadata"]["annotations"][EXTERNAL_ID]
        if claim == "other object":
            assert f"{APPLIED_FOR}=AcmeMachine/{external_id}" in text
        else:
            assert "Pod p controls it" in text

    @scenario
    async def test_an_object_that_several_machines_apply_is_not_changed_by_each(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(_apply("1"))
        key = await add_machine(env)
        await env.eventually("created", lambda: _data(env) == {"size": "1"})
        before = env.api.find("ConfigMap", RECORD)
        cluster = NamespacedName(key.namespace, "c1")
        await env.running_machine(cluster, "m2")
        assert env.api.find("ConfigMap", RECORD) == before


def _of_user(env: InfrastructureEnvironment) -> JSON:
    made = _config_map("record")
    made["metadata"]["namespace"] = "default"
    return {**made, "data": {"size": "user"}}


def _apply(size: str, **options: bool) -> Any:
    def reconcile(machine: Any) -> Any:
        machine.client.apply({**_config_map("record"), "data": {"size": size}}, **options)
        return PROVISIONED

    return reconcile


def _data(env: InfrastructureEnvironment) -> Any:
    found = env.api.find("ConfigMap", RECORD)
    return (found or {}).get("data")


def _restore(env: InfrastructureEnvironment, **changed: Any) -> None:
    """Delete the record, and create it again from a backup with some of its metadata changed."""
    found = env.api.find("ConfigMap", RECORD)
    assert found is not None
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {name: found["metadata"][name] for name in kept if name in found["metadata"]}
    env.api.remove("ConfigMap", RECORD)
    env.api.add({**found, "metadata": {**metadata, **changed}})
