"""What is allocated in another system: one address for each claim, and none without a claim."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.faults import FAILURES, FAULTY_SECONDS, NONE, Faults
from capsmith_runtime.testing.identities import has_sessions
from capsmith_runtime.testing.ipam.environment import ADDRESS, CLAIM, IPAMEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest, simulate

ELSEWHERE = "elsewhere"


class AddressSystemConformance(IPAMConformance):
    """Base class for scenarios that look into the system that allocates the addresses."""

    method = "addresses"
    """The method that the test double must have."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[PoolKind]]:
        """Return the cases of kinds without ranges, or none if the double lacks a method."""
        system = provider.address_system
        if not (hasattr(system, "addresses") and hasattr(system, cls.method)):
            return []
        return [case for case in super().cases(provider) if "ranges" not in case.kind.features]


class TestAddressSystem(AddressSystemConformance):
    """Allocated addresses belong to claims; requires a test double with ``addresses``."""

    @scenario
    async def test_a_claim_allocates_one_address(self, env: IPAMEnvironment) -> None:
        """Each claim allocates one address, whatever restarts, and releases it with its deletion.

        Proves: IP-09, IP-10.
        """
        pool = env.add_pool()
        keys = [env.add_claim(pool, f"a{number}") for number in range(3)]
        for key in keys:
            await env.gets(key)
        await env.restart()
        await env.quiet()
        assert len(env.allocated()) == len(keys)

        env.api.remove(CLAIM, keys[0])
        await env.goes(CLAIM, keys[0])
        assert len(env.allocated()) == len(keys) - 1
        for key in keys[1:]:
            env.api.remove(CLAIM, key)
            await env.goes(CLAIM, key)
        assert env.allocated() == []

    @scenario
    async def test_claims_of_one_name_are_kept_apart(self, env: IPAMEnvironment) -> None:
        """Claims of one name in two namespaces have two addresses; each releases its own.

        Names are unique in a namespace only: use ``external_id`` or ``short_id``.

        Proves: IP-09, IP-10.
        """
        env.add_namespace(ELSEWHERE)
        pool = env.add_pool()
        is_namespaced = env.kind.resource.namespaced
        other = env.add_pool(namespace=ELSEWHERE) if is_namespaced else pool
        keys = [env.add_claim(pool), env.add_claim(other, namespace=ELSEWHERE)]
        for key in keys:
            await env.gets(key)
        assert len(env.allocated()) == len(keys)
        assert len(set(env.given())) == len(keys)
        env.api.remove(CLAIM, keys[0])
        await env.goes(CLAIM, keys[0])
        assert len(env.allocated()) == 1
        await env.restart()
        await env.quiet()
        assert len(env.allocated()) == 1
        assert env.has_address(keys[1])

    @scenario
    async def test_an_address_is_released_after_its_pool_is_gone(
        self, env: IPAMEnvironment
    ) -> None:
        """A claim whose pool was deleted by force releases its address.

        ``raw_pool_spec`` is None then: release by external id alone.  With sessions, the claim
        waits for a pool of that name, which names the identity.

        Proves: IP-10.
        """
        pool = env.add_pool()
        key = env.add_claim(pool)
        await env.gets(key)
        await env.settles(pool)
        kind = env.kind.resource.kind
        env.api.change(kind, pool, {"metadata": {"finalizers": None}})
        env.api.remove(kind, pool)
        await env.quiet()
        env.api.remove(CLAIM, key)
        if has_sessions(env.kind):
            await env.quiet()
            assert len(env.allocated()) == 1, "released without credentials"
            env.add_pool()
        await env.goes(CLAIM, key)
        assert env.allocated() == []

    @scenario
    async def test_an_address_that_is_not_recorded_is_allocated_once(
        self, env: IPAMEnvironment
    ) -> None:
        """If a manager crashes before it records an address, the next one finds that address.

        Look for an address with the external id of the claim before you allocate one.

        Proves: SM-09, IP-09.
        """
        pool = env.add_pool()
        await env.quiet()
        key = await _crash_before_record(env, pool)
        env.start()
        await env.gets(key)
        assert len(env.allocated()) == 1

    @scenario
    async def test_an_address_that_is_not_recorded_is_released(self, env: IPAMEnvironment) -> None:
        """A claim that is deleted before its address was recorded releases that address.

        Release by external id: ``claim.address`` is None then.

        Proves: SM-09, IP-10.
        """
        pool = env.add_pool()
        await env.quiet()
        key = await _crash_before_record(env, pool)
        env.api.remove(CLAIM, key)
        env.start()
        await env.goes(CLAIM, key)
        assert env.allocated() == []


class TestAddressSystemCalls(AddressSystemConformance):
    """Calls of the other system that fail; requires a test double with ``simulate``, too."""

    method = "simulate"

    @pytest.mark.parametrize("failure", FAILURES)
    @scenario
    async def test_a_failing_allocation_is_reported_and_repeated(
        self, env: IPAMEnvironment, failure: str
    ) -> None:
        """An allocation that fails is reported in Ready and repeated; one address is allocated.

        Proves: SM-09, IP-09.
        """
        pool = env.add_pool()
        await env.quiet()
        simulate(env.address_system, FAILURES[failure])
        key = env.add_claim(pool)
        await _fails(env, key)
        assert env.address(key) is None
        simulate(env.address_system, NONE)
        await env.gets(key)
        await env.quiet()
        assert len(env.allocated()) == 1

    @pytest.mark.parametrize("failure", FAILURES)
    @scenario
    async def test_a_failing_release_is_repeated(self, env: IPAMEnvironment, failure: str) -> None:
        """A release that fails keeps the claim, is reported in Ready, and is repeated.

        Let the errors of the system pass: only ``Deleted`` lets the claim go.

        Proves: SM-09, IP-10.
        """
        pool = env.add_pool()
        key = env.add_claim(pool)
        await env.gets(key)
        await env.settles(pool)
        simulate(env.address_system, FAILURES[failure])
        env.api.remove(CLAIM, key)
        await _fails(env, key)
        simulate(env.address_system, NONE)
        await env.goes(CLAIM, key)
        assert env.allocated() == []

    @scenario
    async def test_a_failing_search_is_not_an_empty_one(self, env: IPAMEnvironment) -> None:
        """While the search for an address that is not recorded fails, no other one is allocated.

        Let the error of a search pass: it has not found that there is no address.

        Proves: SM-09, IP-09.
        """
        pool = env.add_pool()
        await env.quiet()
        key = await _crash_before_record(env, pool)
        simulate(env.address_system, FAILURES["lost"])
        env.start()
        await _fails(env, key)
        await env.quiet()
        simulate(env.address_system, NONE)
        await env.gets(key)
        assert len(env.allocated()) == 1

    @scenario
    async def test_a_claim_waits_while_no_address_is_free(self, env: IPAMEnvironment) -> None:
        """A claim on an exhausted pool waits, and gets the first address that is free again.

        Return ``exhausted()``: after a TerminalError the claim is not tried again soon enough.

        Proves: IP-09.
        """
        pool = env.add_pool()
        await env.quiet()
        simulate(env.address_system, Faults(full=1.0))
        key = env.add_claim(pool)
        await env.eventually(
            "it has an address or waits",
            lambda: env.has_address(key) or condition(env.claim(key), "Ready")[0] == "False",
        )
        if env.has_address(key):
            pytest.skip("not simulated: the test double has an address although full=1")
        await env.quiet()
        assert env.address(key) is None
        simulate(env.address_system, NONE)
        await env.gets(key)
        assert len(env.allocated()) == 1

    @scenario
    async def test_lost_replies_allocate_nothing_twice(self, env: IPAMEnvironment) -> None:
        """An address whose allocation succeeded without a reply is not allocated a second time.

        Proves: SM-09, IP-09.
        """
        pool = env.add_pool()
        await env.quiet()
        simulate(env.address_system, Faults(lost=0.2))
        keys = [env.add_claim(pool, f"a{number}") for number in range(8)]
        for key in keys:
            await env.gets(key)
        simulate(env.address_system, NONE)
        await env.quiet()
        assert len(env.allocated()) == len(keys)

    @scenario
    async def test_searches_that_fail_at_times_allocate_nothing_twice(
        self, env: IPAMEnvironment
    ) -> None:
        """While any call may fail, a claim whose search fails allocates no second address.

        Let the error of a search pass, even if a later call of the same reconcile would succeed.

        Proves: SM-09, IP-09.
        """
        pool = env.add_pool()
        await env.quiet()
        simulate(env.address_system, Faults(lost=0.5, seed=1))
        keys = [env.add_claim(pool, f"a{number}") for number in range(16)]
        await asyncio.sleep(FAULTY_SECONDS)
        simulate(env.address_system, NONE)
        for key in keys:
            await env.gets(key)
        await env.quiet()
        assert len(env.allocated()) == len(keys)


async def _crash_before_record(env: IPAMEnvironment, pool: NamespacedName) -> NamespacedName:
    """Add a claim, and kill the manager when it has allocated an address and writes it."""
    reached = asyncio.Event()

    def crash(verb: str, kind: str, body: JSON) -> None:
        if kind == ADDRESS:
            reached.set()
            raise create_api_error(500, "InternalError", "the request never arrived")

    env.api.fault = crash
    key = env.add_claim(pool)
    await env.eventually("its address is written", reached.is_set)
    await env.kill()
    env.api.fault = None
    assert len(env.allocated()) == 1
    return key


async def _fails(env: IPAMEnvironment, key: NamespacedName) -> None:
    """Wait until a claim, which has to exist, reports the error that a call raised."""

    def is_reported() -> bool:
        status, _ = condition(env.claim(key), "Ready")
        return status in ("False", "Unknown")

    await env.eventually(
        "Ready is False or Unknown (a share of 1 makes all calls fail)", is_reported
    )
