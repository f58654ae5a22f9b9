"""Addresses that others created, that belong to other claims, or that lost their claim."""

from __future__ import annotations

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance
from capsmith_runtime.testing.ipam.environment import (
    ADDRESS,
    CLAIM,
    PROTECT,
    IPAMEnvironment,
)


class TestOrphanedAddresses(IPAMConformance):
    """Addresses that others created, that belong to other claims, or that lost their claim."""

    @scenario
    async def test_an_address_of_that_name_may_have_another_owner(
        self, env: IPAMEnvironment
    ) -> None:
        """A claim reports an IPAddress of its name that another claim owns, and waits for it.

        Proves: IP-05, IP-09.
        """
        pool = env.add_pool()
        env.add_address(pool, "a1", "10.0.0.5", claim="another")
        key = env.add_claim(pool)
        await env.says(key, "AllocationFailed")
        env.api.remove(ADDRESS, key)
        await env.gets(key)

    @scenario
    async def test_an_address_without_claim_is_released(
        self, env: IPAMEnvironment, no_grace: None
    ) -> None:
        """An address whose claim no longer exists is released.

        The test removes the finalizer of the claim by hand.

        Proves: IP-10.
        """
        pool = env.add_pool()
        by_hand = env.add_address(pool, "by-hand", "10.0.0.4")
        key = env.add_claim(pool)
        await env.gets(key)
        await env.quiet()
        env.api.change(CLAIM, key, {"metadata": {"finalizers": None}})
        env.api.remove(CLAIM, key)
        await env.goes(ADDRESS, key)
        await env.counts(pool, total=5, used=1, free=4)
        assert env.address(by_hand) is not None

    @scenario
    async def test_an_address_of_an_earlier_claim_is_removed(self, env: IPAMEnvironment) -> None:
        """An address of an earlier claim of the same name is deleted.

        A finalizer of another controller delays the deletion; the new claim waits for it.

        Proves: IP-09, IP-10.
        """
        pool = env.add_pool()
        key = env.add_claim(pool)
        await env.gets(key)
        finalizers = {"finalizers": [PROTECT, "example.com/held"]}
        env.api.change(ADDRESS, key, {"metadata": finalizers})
        env.api.remove(CLAIM, key)
        await env.goes(CLAIM, key)
        env.add_claim(pool)
        await env.quiet()
        assert not env.has_address(key)

        env.api.change(ADDRESS, key, {"metadata": {"finalizers": None}})
        await env.gets(key)
        address = env.address(key)
        assert address is not None
        owner = address["metadata"]["ownerReferences"][0]
        assert owner["uid"] == env.claim(key)["metadata"]["uid"]

    @scenario
    async def test_a_removed_address_is_replaced(self, env: IPAMEnvironment) -> None:
        """A claim whose IPAddress was removed gets another one.

        Proves: IP-09.
        """
        pool = env.add_pool()
        key = env.add_claim(pool)
        await env.gets(key)
        await env.quiet()
        env.api.change(ADDRESS, key, {"metadata": {"finalizers": None}})
        env.api.remove(ADDRESS, key)
        await env.eventually("there is one again", lambda: env.address(key))
        await env.quiet()
        assert len(env.given()) == 1
