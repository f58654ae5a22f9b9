"""Addresses that have lost their owner references, as after a restored backup."""

from __future__ import annotations

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance
from capsmith_runtime.testing.ipam.environment import ADDRESS, IPAMEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")


@run_with("complete")
class TestLostOwners(IPAMConformance):
    """Addresses that have lost their owner references."""

    @scenario
    async def test_claim_and_pool_own_the_address_again(self, env: IPAMEnvironment) -> None:
        """Restore both owners of an address, which is allocated to the same claim.

        Proves: SM-11, IP-06.
        """
        pool = env.add_pool()
        key = env.add_claim(pool)
        given = await env.gets(key)
        await env.quiet()
        before = (env.address(key) or {})["metadata"]["ownerReferences"]
        env.api.change(ADDRESS, key, {"metadata": {"ownerReferences": None}})
        await env.eventually(
            "it is owned",
            lambda: (env.address(key) or {})["metadata"].get("ownerReferences") == before,
        )
        assert await env.gets(key) == given
