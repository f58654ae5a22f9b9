"""Machines that move to another failure domain, with the objects of both contract versions."""

from __future__ import annotations

import json
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureConformance
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("acme")


@run_with("acme", "homelab-v1beta1")
class TestMovedServers(InfrastructureConformance):
    """Servers that the infrastructure moves, after they were created where they had to be."""

    @scenario
    async def test_the_event_is_sent_once(self, env: InfrastructureEnvironment) -> None:
        """Contract v1beta1 has the failure domain in the spec, v1beta2 in the status.

        Proves: IM-05, IM-06, IM-07.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster, failure_domain="zone-2")
        assert _reported(env, key) == "zone-2"
        assert _mismatches(env) == []

        _move_server(env.infrastructure, "zone-1")
        for _ in range(2):
            await env.restart()
            await env.eventually("it is reported", lambda: _reported(env, key) == "zone-1")
            await env.quiet()
        (warning,) = _mismatches(env)
        assert warning["note"] == "it is in failure domain zone-1, but its Machine requires zone-2"


def _reported(env: InfrastructureEnvironment, key: NamespacedName) -> str:
    part = "spec" if env.contract == "v1beta1" else "status"
    return metadata.text(env.core.infra_machine(key), part, "failureDomain")


def _mismatches(env: InfrastructureEnvironment) -> list[JSON]:
    return [each for each in env.api.all("Event") if each["reason"] == "FailureDomainMismatch"]


def _move_server(double: Any, zone: str) -> None:
    (file,) = (double._folder / "servers").glob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "zone": zone}))
