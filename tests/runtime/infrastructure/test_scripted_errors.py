"""Errors that reconcilers raise with a reason, and failures that no retry resolves."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.contract.versions import STATUS_WRITERS
from capsmith_runtime.errors import create_api_error
from capsmith_runtime.infrastructure import (
    Condition,
    DecodingError,
    InfraClusterScope,
    InfraClusterState,
    ReconcileError,
    TerminalError,
    Waiting,
)
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.reconcile import author_step
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedClusterReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)
from tests.runtime.support.following import sample

PROVIDER = scripted_provider.PROVIDER
SOON = 0.05
LIMITED = ReconcileError("RateLimited", "the cloud allows 10 requests", retry_after=20)


def _refuse_statuses(env: InfrastructureEnvironment, seconds: int) -> list[str]:
    """Have no capacity for the first two statuses of machines; return the list of those refused.

    ``seconds`` is the delay that the API server requests.
    """
    refused: list[str] = []

    def refuse(verb: str, of: str, body: JSON) -> None:
        if of == env.machine_kind.resource.kind and "status" in body and len(refused) < 2:
            refused.append(verb)
            raise create_api_error(429, "TooManyRequests", "try again later", seconds)

    env.api.fault = refuse
    return refused


class TestErrorsWithReason(ScriptedMachines):
    """What the Ready condition reports, and when the call is repeated."""

    @scenario
    async def test_reason_and_delay_of_an_error(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        script = normal(LIMITED)
        key = await add_machine(env)
        await env.eventually(
            "reported", lambda: ready_condition(env, key) == ("False", "RateLimited")
        )
        conditions = env.core.infra_machine(key)["status"]["conditions"]
        assert "the cloud allows 10 requests" in [each["message"] for each in conditions]
        await env.quiet()
        began, calls = asyncio.get_running_loop().time(), len(script.calls)
        await env.eventually("called again", lambda: len(script.calls) > calls)
        assert asyncio.get_running_loop().time() - began > 15
        failures = [each for each in caplog.records if each.getMessage() == "reconcile failed"]
        assert {each.levelno for each in failures} == {logging.WARNING}
        assert not any(each.exc_info for each in failures)

    @scenario
    async def test_an_overloaded_api_server_repeats_no_call(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """A status that it had no capacity for is sent again, without a call of the reconciler."""
        refused = _refuse_statuses(env, 1)
        script = normal(PROVISIONED)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        assert len(refused) == 2
        assert len(script.calls) == 1

    @scenario
    async def test_a_long_overload_is_left_to_the_queue(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """No worker waits for minutes."""
        _refuse_statuses(env, 60)
        script = normal(PROVISIONED, PROVISIONED, PROVISIONED)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        assert len(script.calls) == 3

    @scenario
    async def test_an_invalid_spec_is_reported_after_writes_failed(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing changes the object again, so a failed write has to be repeated soon.

        Proves: ST-06.
        """
        kind = env.machine_kind.resource.kind
        failures: list[str] = []

        def fail(verb: str, of: str, body: JSON) -> None:
            if (verb, of) == ("patch_status", kind):
                failures.append(verb)
                raise create_api_error(503, "ServiceUnavailable", "overloaded")

        def refuse(cls: object, value: object, path: str) -> object:
            raise DecodingError(path, "a size", value)

        cluster = await env.running_cluster()
        monkeypatch.setattr(author_step, "decode", refuse)
        env.api.fault = fail
        key = env.core.add_machine(cluster)
        await env.eventually("a write has failed", lambda: failures)
        await env.quiet()
        env.api.fault = None
        expected = ("False", "InvalidSpec")
        await env.eventually("reported", lambda: ready_condition(env, key) == expected)

    @scenario
    async def test_a_terminal_error_is_not_retried(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-10, ST-06."""
        script = normal(TerminalError("InvalidImage", "no such image"))
        key = await add_machine(env)
        await env.eventually(
            "reported", lambda: ready_condition(env, key) == ("False", "InvalidImage")
        )
        await env.quiet()
        calls = len(script.calls)
        await asyncio.sleep(200)
        assert len(script.calls) == calls
        assert not env.has_machine(key)
        assert "failureReason" not in env.core.infra_machine(key)["status"]

    @scenario
    async def test_a_change_of_the_object_ends_a_terminal_error(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(TerminalError("InvalidImage", "no such image"))
        key = await add_machine(env)
        await env.eventually("called", lambda: script.calls)
        await env.quiet()
        kind = env.machine_kind.resource.kind
        assert sample(env.metrics, f'terminal_failures_total{{controller="{kind}"}}') >= 1
        script.results = [PROVISIONED]
        labels = {"metadata": {"labels": {"example.com/image": "uploaded"}}}
        env.api.change(env.machine_kind.resource.kind, key, labels)
        await env.eventually("provisioned", lambda: env.has_machine(key))

    @scenario
    async def test_a_terminal_error_of_a_cluster(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def reconcile(self: object, cluster: InfraClusterScope[Any]) -> InfraClusterState | Waiting:
            raise TerminalError("RegionClosed", "the region does not exist any longer")

        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", reconcile)
        key = env.core.add_cluster()
        await env.eventually(
            "reported",
            lambda: condition(env.core.infra_cluster(key), "Ready") == ("False", "RegionClosed"),
        )

    @scenario
    async def test_a_deletion_fails_with_a_reason(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        normal(replace(PROVISIONED, requeue_after=None))
        delete(TerminalError("ServerLocked", "the server is locked"))
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually(
            "reported", lambda: ready_condition(env, key) == ("False", "ServerLocked")
        )
        assert env.core.infra_machine(key)["metadata"]["finalizers"]


def test_only_contract_v1beta1_has_fields_for_terminal_failures() -> None:
    """Proves: IC-12, IC-13, IM-11."""
    status = {"ready": True}
    old, new = STATUS_WRITERS["v1beta1"], STATUS_WRITERS["v1beta2"]
    failed = old.add_failure(status, "InvalidImage", "no such image")

    assert failed == {
        "ready": True,
        "failureReason": "InvalidImage",
        "failureMessage": "no such image",
    }
    assert old.remove_failure(failed) == status
    assert new.add_failure(status, "InvalidImage", "no such image") == status
    assert new.remove_failure(failed) == failed


def test_a_reason_is_one_word() -> None:
    with pytest.raises(ValueError, match="CamelCase"):
        ReconcileError("two words")
    with pytest.raises(ValueError, match="CamelCase"):
        Condition(type="Paid", status=True, reason="two words")
