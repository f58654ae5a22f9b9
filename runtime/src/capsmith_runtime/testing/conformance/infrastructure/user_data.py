"""Bootstrap data reach the servers; requires a test double that knows them."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import join_command
from capsmith_runtime.testing.provider import KnowsUserData, ProviderUnderTest


class TestUserData(InfrastructureConformance):
    """The bootstrap data of servers; requires a test double with the method ``user_data``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return a case per pair of kinds and core version, or none without ``user_data``."""
        if not hasattr(provider.infrastructure, "user_data"):
            return []
        return super().cases(provider)

    @scenario
    async def test_servers_get_the_data_of_their_machines(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Each server is created with the bootstrap data of its Machine, and of no other.

        Without them it starts, and never becomes a Node.
        """
        assert isinstance(env.infrastructure, KnowsUserData)
        cluster = await env.running_cluster()
        keys = [await env.running_machine(cluster, name) for name in ("m1", "m2")]
        texts = env.infrastructure.user_data()
        assert sorted(texts) == sorted(env.infrastructure.servers())
        for key in keys:
            line = f"runcmd: [{join_command(key)}]"
            found = [name for name, text in texts.items() if line in text.splitlines()]
            assert len(found) == 1, (
                f"the bootstrap data of {key} are in those of {len(found)} servers, not 1: their"
                f" text has to have the line `{line}`; user_data() returns {texts}"
            )
