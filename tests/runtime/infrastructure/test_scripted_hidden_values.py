"""Credentials in the messages of an SDK's errors reach no object, event or log line."""

from __future__ import annotations

import base64
import http.client
import json
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from capsmith_runtime.infrastructure import (
    Condition,
    Credentials,
    ReconcileError,
    SessionFactory,
    TerminalError,
    Waiting,
)
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.log import JsonFormatter, TextFormatter
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachineReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
)

PROVIDER = scripted_provider.PROVIDER
TOKEN = "correct-horse\n"
"""As ``echo`` writes it: no HTTP client accepts it in a header."""
SECRET = TOKEN.strip()


class LogIns(SessionFactory[str]):
    """Sessions of an SDK that sends its token with the first request."""

    fails: ClassVar[bool] = False

    def open(self, credentials: Credentials) -> str:
        if self.fails:
            send(credentials["token"])
        return credentials["token"]


def send(token: str) -> None:
    """Add a token to a request; Python refuses it."""
    connection = http.client.HTTPConnection("cloud.example.com")
    connection.putrequest("GET", "/servers", skip_host=True)
    connection.putheader("Authorization", f"Bearer {token}")


def _send(machine: Any) -> Any:
    send(machine.session(LogIns))


def _report(machine: Any) -> Any:
    try:
        _send(machine)
    except ValueError as error:
        raise ReconcileError("Refused", str(error)) from error


def _wait(machine: Any) -> Any:
    return Waiting("Refused", f"the cloud does not accept {machine.session(LogIns)}")


def _record(machine: Any) -> Any:
    machine.events.warning("Refused", f"the cloud does not accept {machine.session(LogIns)!r}")
    machine.logger.warning("refused", token=machine.session(LogIns))
    return PROVISIONED


def _condition(message: str) -> Condition:
    return Condition(type="LoggedIn", status=True, reason="Accepted", message=message)


def _describe(machine: Any) -> Any:
    message = f"the cloud accepts {machine.session(LogIns)}"
    return replace(PROVISIONED, conditions=[_condition(message)])


def _end(machine: Any) -> Any:
    raise TerminalError("Refused", f"the cloud does not accept {machine.session(LogIns)}")


class TestHiddenValues(ScriptedMachines):
    """What is written and logged names the key of a credential instead of its value."""

    @pytest.fixture(autouse=True)
    def sessions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LogIns, "fails", False)
        monkeypatch.setattr(ScriptedMachineReconciler, "session_factory", LogIns, raising=False)

    @pytest.fixture(autouse=True, params=[TextFormatter, JsonFormatter])
    def log(
        self, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
    ) -> pytest.LogCaptureFixture:
        caplog.handler.setFormatter(request.param())
        return caplog

    @scenario
    @pytest.mark.parametrize("result", [_send, _report, _wait, _record, _describe, _end])
    async def test_a_method_that_fails(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        result: Any,
        log: pytest.LogCaptureFixture,
    ) -> None:
        _write_token(env)
        normal(result)
        await add_machine(env)
        await env.eventually("it is reported", lambda: "(hidden: token)" in _written(env))
        await env.quiet()
        assert SECRET not in _written(env)
        assert SECRET not in log.text

    @scenario
    async def test_a_session_that_cannot_be_opened(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
        log: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr(LogIns, "fails", True)
        _write_token(env)
        normal(PROVISIONED)
        await add_machine(env)
        await env.eventually("it is reported", lambda: "(hidden: token)" in _written(env))
        assert SECRET not in _written(env)
        assert SECRET not in log.text


def _write_token(env: InfrastructureEnvironment) -> None:
    (identity,) = env.api.all("AcmeIdentity")
    key = NamespacedName(env.component.namespace, identity["spec"]["secretRef"]["name"])
    data = {"token": base64.b64encode(TOKEN.encode()).decode()}
    env.api.change("Secret", key, {"data": data})


def _written(env: InfrastructureEnvironment) -> str:
    return json.dumps([obj for obj in env.api.everything() if obj["kind"] != "Secret"])
