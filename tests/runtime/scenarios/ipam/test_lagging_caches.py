"""Claims and addresses whose watches are served by API servers that lag."""

from __future__ import annotations

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance
from capsmith_runtime.testing.ipam.environment import ADDRESS, CLAIM, IPAMEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")
_LAG_SECONDS = 60.0


@run_with("complete")
class TestLaggingCaches(IPAMConformance):
    """The manager has not seen its own IPAddress yet."""

    @scenario
    async def test_a_deleted_claim_leaves_no_address_behind(self, env: IPAMEnvironment) -> None:
        """Delete the address before the claim loses its finalizer.

        Proves: IP-10.
        """
        pool = env.add_pool()
        await env.quiet()
        env.api.lags[ADDRESS] = _LAG_SECONDS
        key = env.add_claim(pool)
        await env.gets(key)
        env.api.remove(CLAIM, key)
        await env.goes(CLAIM, key)
        assert env.given() == []
