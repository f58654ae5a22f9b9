"""Addresses that others created, that belong to other claims, or that lost their claim."""

from __future__ import annotations

import copy

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance, RangedIPAMConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.ipam.environment import (
    ADDRESS,
    CLAIM,
    NAMESPACE,
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


class TestOrphanedAddressesWithRanges(RangedIPAMConformance):
    """Addresses without claims, of pools with ranges."""

    @scenario
    async def test_addresses_created_by_others_are_in_use(self, env: IPAMEnvironment) -> None:
        """An IPAddress that a user created is never allocated, and is free once it is deleted.

        Proves: IP-09.
        """
        pool = env.add_pool()
        env.add_address(pool, "by-hand", "10.0.0.2")
        env.add_address(pool, "nonsense", "no address at all")
        env.add_address(pool, "outside", "10.7.7.7")
        keys = [env.add_claim(pool, f"a{number}") for number in range(5)]
        given = [await env.gets(key) for key in keys[:4]]
        assert set(given) == {f"10.0.0.{number}" for number in range(3, 7)}
        await env.says(keys[4], "PoolExhausted")
        await env.counts(pool, total=5, used=5, free=0)

        env.api.remove(ADDRESS, NamespacedName(NAMESPACE, "by-hand"))
        assert await env.gets(keys[4]) == "10.0.0.2"
        assert env.address(NamespacedName(NAMESPACE, "outside")) is not None

    @scenario
    async def test_an_existing_address_is_used(self, env: IPAMEnvironment) -> None:
        """An IPAddress that exists for a claim already is completed, not replaced.

        Proves: IP-09.
        """
        pool = env.add_pool()
        env.add_address(pool, "a1", "10.0.0.5", claim="a1")
        key = env.add_claim(pool)
        assert await env.gets(key) == "10.0.0.5"
        address = env.address(key)
        assert address is not None
        assert address["metadata"]["finalizers"] == [PROTECT]
        owners = address["metadata"]["ownerReferences"]
        assert [owner["kind"] for owner in owners] == [CLAIM, env.kind.resource.kind]

    @scenario
    async def test_a_conflicting_address_is_not_published(self, env: IPAMEnvironment) -> None:
        """A claim does not get an address that another IPAddress already holds.

        The claim reports the conflict, and gets the address once it is free.

        Proves: IP-05, IP-09.
        """
        pool = env.add_pool()
        first = env.add_claim(pool, "first")
        text = await env.gets(first)
        env.add_address(pool, "second", text, claim="second")
        second = env.add_claim(pool, "second")
        await env.says(second, "AllocationFailed")
        assert condition(env.claim(first), "Ready") == ("True", "Ready")

        env.api.remove(CLAIM, first)
        assert await env.gets(second) == text

    @scenario
    async def test_a_late_address_of_an_earlier_claim_is_removed(
        self, env: IPAMEnvironment
    ) -> None:
        """An IPAddress that a former leader created too late for a deleted claim is deleted.

        Another claim has the address by now.

        Proves: IP-09, SM-09.
        """
        pool = env.add_pool()
        first = env.add_claim(pool, "first")
        text = await env.gets(first)
        given = env.address(first)
        assert given is not None
        late = copy.deepcopy(given)
        late["metadata"]["name"] = late["spec"]["claimRef"]["name"] = "second"
        for owner in late["metadata"]["ownerReferences"][:1]:
            owner.update(name="second", uid="of a claim that is gone")
        env.api.add(late)
        second = env.add_claim(pool, "second")
        assert await env.gets(second) != text
        assert len(env.given()) == 2
