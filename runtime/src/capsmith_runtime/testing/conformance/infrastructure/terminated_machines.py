"""Servers that disappear from the infrastructure while their machines exist."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest, RemovesServers


class TestTerminatedMachines(InfrastructureConformance):
    """Servers that disappear; only if the test double has the method ``remove_server``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return each pair of kinds with each version of core."""
        if not hasattr(provider.infrastructure, "remove_server"):
            return []
        return super().cases(provider)

    @scenario
    async def test_a_server_that_disappears_is_not_created_again(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine whose server disappears stays provisioned, and gets no other server.

        Core replaces the Machine: another server would run with old bootstrap data.

        Proves: IM-01, IM-03, IM-10.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        provider_id = env.core.infra_machine(key)["spec"]["providerID"]
        _remove_server(env)
        await env.restart()
        await env.eventually(
            "Ready is False", lambda: condition(env.core.infra_machine(key), "Ready")[0] == "False"
        )
        await env.quiet()
        await env.restart()
        await env.quiet()

        obj = env.core.infra_machine(key)
        assert env.infrastructure.servers() == [], "the server was created a second time"
        assert obj["spec"]["providerID"] == provider_id
        assert env.core.provisioned(obj)
        _, reason = condition(obj, "Ready")
        assert reason not in ("InternalError", "InvalidResult", "ProviderIDChanged")

    @scenario
    async def test_a_machine_without_a_server_can_be_replaced(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine whose server disappeared can be deleted, and a new one gets its own server.

        Proves: IM-25.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        provider_id = env.core.infra_machine(key)["spec"]["providerID"]
        _remove_server(env)
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("it is deleted", lambda: env.is_gone(env.machine_kind, key))
        assert env.infrastructure.servers() == []

        replacement = await env.running_machine(cluster, "m2")
        assert env.core.infra_machine(replacement)["spec"]["providerID"] != provider_id
        assert len(env.infrastructure.servers()) == 1


def _remove_server(env: InfrastructureEnvironment) -> None:
    assert isinstance(env.infrastructure, RemovesServers)
    (server,) = env.infrastructure.servers()
    env.infrastructure.remove_server(server)
