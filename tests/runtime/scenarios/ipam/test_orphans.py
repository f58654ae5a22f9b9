"""Addresses of pools with ranges that others created, or that lost their claim."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from capsmith_runtime.ipam import (
    AddressRelease,
    Credentials,
    ExternalPoolReconciler,
    SessionFactory,
)
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance, RangedIPAMConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.identities import remove_identity
from capsmith_runtime.testing.ipam.environment import (
    ADDRESS,
    CLAIM,
    FIVE,
    NAMESPACE,
    PAUSED,
    PROTECT,
    IPAMEnvironment,
)
from tests.runtime.scenarios.providers import provider, run_with
from tests.runtime.support.following import sample

PROVIDER = provider("complete")


@run_with("complete")
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
    async def test_claims_that_a_user_serves_leave_their_turns_to_the_next(
        self, env: IPAMEnvironment
    ) -> None:
        """A free address goes to the next claim if the first in line have others by then."""
        pool = env.add_pool({**FIVE, "addresses": ["10.0.0.2"]})
        held = env.add_address(pool, "by-hand", "10.0.0.2")
        *served, last = (env.add_claim(pool, f"a{number}") for number in range(7))
        for key in (*served, last):
            await env.says(key, "PoolExhausted")
        for number, key in enumerate(served):
            env.add_address(pool, key.name, f"10.7.7.{number}", claim=key.name)
            await env.gets(key)
        await env.quiet()
        env.api.remove(ADDRESS, held)
        assert await env.gets(last) == "10.0.0.2"

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

    @scenario
    @pytest.mark.parametrize("what", ["cluster", "pool"])
    async def test_an_address_without_claim_is_released_after_a_pause(
        self, env: IPAMEnvironment, no_grace: None, what: str
    ) -> None:
        """The end of the pause wakes the address, although its claim is gone.

        Proves: IP-10, SM-01.
        """
        pool, cluster = env.add_pool(), env.add_cluster()
        key = env.add_claim(pool, cluster=cluster.name)
        await env.gets(key)
        await env.quiet()
        kind, paused = env.kind.resource.kind, pool
        pause: JSON = {"metadata": {"annotations": {PAUSED: ""}}}
        resume: JSON = {"metadata": {"annotations": {PAUSED: None}}}
        if what == "cluster":
            kind, paused = "Cluster", cluster
            pause, resume = {"spec": {"paused": True}}, {"spec": {"paused": None}}
        env.api.change(kind, paused, pause)
        await env.quiet()
        env.api.change(CLAIM, key, {"metadata": {"finalizers": None}})
        env.api.remove(CLAIM, key)
        await env.quiet()
        assert env.address(key) is not None

        env.api.change(kind, paused, resume)
        await env.goes(ADDRESS, key)

    @scenario
    async def test_addresses_in_unwatched_namespaces_are_left(
        self, env: IPAMEnvironment, no_grace: None
    ) -> None:
        """An IPAddress without a claim is deleted only by managers that watch its namespace.

        All managers read the addresses of cluster-scoped pools in all namespaces.

        Proves: CC-33, IP-09.
        """
        pool = env.add_pool()
        key = env.add_claim(pool)
        await env.gets(key)
        await env.stop()
        env.api.change(CLAIM, key, {"metadata": {"finalizers": None}})
        env.api.remove(CLAIM, key)
        env.start(excluded_namespaces=(NAMESPACE,))
        await env.quiet()
        assert env.address(key) is not None

        await env.stop()
        env.start(namespaces=("elsewhere", NAMESPACE))
        await env.goes(ADDRESS, key)


class Clients(SessionFactory[str]):
    """The user is the client."""

    def open(self, credentials: Credentials) -> str:
        return str(credentials)


@run_with("managed")
class TestOrphanedAddressesWithIdentities(IPAMConformance):
    """Addresses without claims, of pools in another system that requires credentials."""

    @pytest.fixture(autouse=True)
    def sessions(self, case: KindCase[PoolKind], monkeypatch: pytest.MonkeyPatch) -> None:
        reconciler = case.kind.reconciler
        assert issubclass(reconciler, ExternalPoolReconciler)
        release = reconciler.release

        def with_session(self: Any, claim: AddressRelease) -> Any:
            claim.session(Clients)
            return release(self, claim)

        monkeypatch.setattr(reconciler, "session_factory", Clients)
        monkeypatch.setattr(reconciler, "release", with_session)

    @scenario
    async def test_an_address_without_claim_waits_for_the_identity_of_its_pool(
        self, env: IPAMEnvironment, no_grace: None
    ) -> None:
        """The wait is no error, and the address is released once the identity is back."""
        await env.stop()
        env.start(sync_period=20)
        pool = env.add_pool()
        key = env.add_claim(pool)
        await env.gets(key)
        identity = remove_identity(env.api, env.pool(pool)["spec"]["identityRef"])
        await env.pool_says(pool, "False", "IdentityNotFound")
        env.api.change(CLAIM, key, {"metadata": {"finalizers": None}})
        env.api.remove(CLAIM, key)
        await env.quiet()
        assert env.address(key) is not None
        assert (
            sample(
                env.metrics, f'controller_runtime_reconcile_errors_total{{controller="{ADDRESS}"}}'
            )
            == 0
        )

        env.api.add(identity)
        await env.goes(ADDRESS, key)
