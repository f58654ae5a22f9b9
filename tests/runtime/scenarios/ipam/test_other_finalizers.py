"""Claims that finalizers of other controllers keep."""

from __future__ import annotations

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance
from capsmith_runtime.testing.ipam.environment import CLAIM, IPAMEnvironment
from tests.runtime.scenarios.kept_objects import check_condition, delete_but_keep
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")


@run_with("complete")
class TestOtherFinalizers(IPAMConformance):
    """A claim whose address is released is not ready, even if it stays."""

    @scenario
    async def test_a_deleted_claim_is_not_ready(self, env: IPAMEnvironment) -> None:
        key = env.add_claim(env.add_pool())
        await env.gets(key)
        await env.quiet()
        check_condition(await delete_but_keep(env, CLAIM, key), "Ready", "False")
        assert env.address(key) is None
