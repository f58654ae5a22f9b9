"""Addresses are complete from their first write on."""

from __future__ import annotations

from capsmith_runtime.contract.ipam import PROTECT_ADDRESS
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance
from capsmith_runtime.testing.ipam.environment import ADDRESS, IPAMEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")


@run_with("complete")
class TestNewAddresses(IPAMConformance):
    """Addresses that have just been allocated."""

    @scenario
    async def test_an_address_is_protected_when_it_is_created(self, env: IPAMEnvironment) -> None:
        """Write the finalizer and the owners with the address, so that a crash leaves none out.

        Proves: IP-06, IP-09.
        """
        key = env.add_claim(env.add_pool())
        await env.gets(key)
        await env.quiet()
        address = env.address(key) or {}
        assert PROTECT_ADDRESS in address["metadata"]["finalizers"]
        assert len(address["metadata"]["ownerReferences"]) == 2
        assert env.api.written(ADDRESS, key) == ["create"]
