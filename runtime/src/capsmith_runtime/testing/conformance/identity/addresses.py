"""Pools that allocate in another system, and whose identity is missing."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance
from capsmith_runtime.testing.identities import has_sessions, remove_identity
from capsmith_runtime.testing.ipam.environment import CLAIM, IPAMEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest


class TestAddressPoolIdentities(IPAMConformance):
    """Identities of pools without ranges; requires ``credentials`` and a session factory."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[PoolKind]]:
        """Return the cases for the kinds that use identities through sessions."""
        return [
            case
            for case in super().cases(provider)
            if "ranges" not in case.kind.features and has_sessions(case.kind)
        ]

    @scenario
    async def test_an_address_without_its_identity_is_not_forgotten(
        self, env: IPAMEnvironment
    ) -> None:
        """A claim on a pool whose identity is gone is released only when the identity is back.

        Without credentials nothing can be released: do not catch the error from ``session``.
        """
        pool = env.add_pool()
        key = env.add_claim(pool)
        await env.gets(key)
        identity = remove_identity(env.api, env.pool(pool)["spec"]["identityRef"])
        await env.pool_says(pool, "False", "IdentityNotFound")
        env.api.remove(CLAIM, key)
        await env.quiet()
        assert env.claim(key)["metadata"]["finalizers"] == [env.kind.finalizer]

        env.api.add(identity)
        await env.goes(CLAIM, key)
        assert env.given() == []
