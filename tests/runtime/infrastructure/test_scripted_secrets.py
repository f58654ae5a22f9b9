"""Credentials and bootstrap data reach neither conditions nor events nor logs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from capsmith_runtime.kube.log import JsonFormatter, TextFormatter
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

PROVIDER = scripted_provider.PROVIDER


def _return_scope(machine: Any) -> Any:
    return machine


def _return_credentials(machine: Any) -> Any:
    machine.logger.info("the scope", machine=machine, credentials=machine.credentials)
    return machine.credentials


def _return_data(machine: Any) -> Any:
    return machine.bootstrap_data()


def _assert_with_scope(machine: Any) -> NoReturn:
    raise AssertionError(f"no provider id: {machine}")


def _raise_with_values(machine: Any) -> NoReturn:
    raise RuntimeError("failed", machine.credentials, machine.bootstrap_data())


def _decode(machine: Any) -> NoReturn:
    bootstrap = machine.bootstrap_data()
    type(bootstrap)(b"\xff" + bootstrap.value, bootstrap.format).text.strip()
    raise AssertionError("decoded")


class TestSecretValues(ScriptedMachines):
    """Errors of authors that would show what must stay secret."""

    @pytest.mark.parametrize(
        "result",
        [
            _return_scope,
            _return_credentials,
            _return_data,
            _assert_with_scope,
            _raise_with_values,
            _decode,
        ],
    )
    @scenario
    async def test_messages_hold_no_secrets(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        caplog: pytest.LogCaptureFixture,
        result: Callable[[Any], Any],
    ) -> None:
        """A careless reconciler shows none of the secrets of a machine."""
        secrets: set[str] = set()

        def collect(machine: Any) -> Any:
            secrets.update(machine.credentials.values())
            secrets.add(machine.bootstrap_data().value.decode())
            return result(machine)

        caplog.set_level(logging.DEBUG)
        normal(collect)
        key = await add_machine(env)
        await env.eventually(
            "reported", lambda: ready_condition(env, key)[0] == "False" and secrets
        )
        await env.eventually("an event", lambda: env.api.all("Event"))
        assert len(secrets) == 2

        shown = [env.core.infra_machine(key)["status"], *env.api.all("Event")]
        for formatter in (TextFormatter(), JsonFormatter()):
            shown += [formatter.format(record) for record in caplog.records]
        for secret in secrets:
            assert secret not in str(shown)
