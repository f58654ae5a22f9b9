"""Lifecycle of a pool: what it allocates, what it reports, and when it is removed."""

from __future__ import annotations

import pytest

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance, RangedIPAMConformance
from capsmith_runtime.testing.ipam.environment import CLAIM, FIVE, IPAMEnvironment

LAST = {"addresses": ["10.9.0.4"], "prefix": 0, "gateway": "10.9.0.9"}
ONE = {"addresses": ["10.0.0.2"], "prefix": 29}
MOVE = "clusterctl.cluster.x-k8s.io/move"


class TestAddressPools(IPAMConformance):
    """Lifecycle of a pool: what it allocates, what it reports, and when it is removed."""

    @scenario
    async def test_many_claims_share_the_writes_of_the_pool(self, env: IPAMEnvironment) -> None:
        pool = env.add_pool({"addresses": ["10.0.0.0/24"], "prefix": 24})
        await env.quiet()
        keys = [env.add_claim(pool, f"a{number}") for number in range(100)]
        given = [await env.gets(key) for key in keys]
        assert len(set(given)) == len(keys)
        if env.has_ranges:
            # Another system answers claims at its own pace, possibly one after the other, and then
            # each has a write of its own.
            assert len(env.api.written(env.kind.resource.kind, pool)) < len(keys) / 2
        await env.counts(pool, total=254, used=100, free=154)
        await env.settles(pool)

    @scenario
    async def test_a_pool_in_use_stays(self, env: IPAMEnvironment) -> None:
        """A deleted pool stays until its last address is released, and allocates no new addresses.

        Proves: SM-08, IP-05.
        """
        kind, pool = env.kind.resource.kind, env.add_pool()
        key = env.add_claim(pool)
        await env.gets(key)
        env.api.remove(kind, pool)
        late = env.add_claim(pool, "late")
        await env.says(late, "PoolNotReady")
        await env.pool_says(pool, "False", "AddressesInUse")

        env.api.remove(CLAIM, key)
        await env.goes(CLAIM, key)
        await env.goes(kind, pool)
        assert env.address(late) is None

    @scenario
    async def test_a_pool_without_addresses_goes_at_once(self, env: IPAMEnvironment) -> None:
        kind, pool = env.kind.resource.kind, env.add_pool()
        await env.pool_says(pool, "True", "Ready")
        env.api.remove(kind, pool)
        await env.goes(kind, pool)

    @scenario
    async def test_claims_created_by_hand_move_with_their_pool(self, env: IPAMEnvironment) -> None:
        """A claim that a user created is moved together with its pool.

        Otherwise, since the claim has no owner, ``clusterctl move`` would leave it and its address
        behind.

        Proves: MV-02, MV-06.
        """
        pool = env.add_pool()
        owner = {"apiVersion": "example.com/v1", "kind": "Server", "name": "s", "uid": "u"}
        owned = env.add_claim(pool, "owned", ownerReferences=[owner])
        free = env.add_claim(pool, "free")
        for key in (owned, free):
            await env.gets(key)
        assert "labels" not in env.claim(owned)["metadata"]
        labels = env.claim(free)["metadata"].get("labels", {})
        assert (MOVE in labels) is env.kind.resource.namespaced


class TestAddressPoolsWithRanges(RangedIPAMConformance):
    """Pools that allocate from ranges in their spec."""

    @scenario
    async def test_prefix_and_gateway_come_from_the_pool(self, env: IPAMEnvironment) -> None:
        """An IPAddress has its pool's prefix length, even if that is 0, and its gateway, if any.

        Proves: IP-06.
        """
        key = env.add_claim(env.add_pool(LAST))
        assert await env.gets(key) == "10.9.0.4"
        address = env.address(key)
        assert address is not None
        assert (address["spec"]["prefix"], address["spec"]["gateway"]) == (0, "10.9.0.9")

        six = env.add_pool({"addresses": ["2001:db8::/126"], "prefix": 64}, "six")
        other = env.add_claim(six, "a2")
        assert await env.gets(other) == "2001:db8::1"
        address = env.address(other)
        assert address is not None
        assert "gateway" not in address["spec"]

    @scenario
    async def test_an_exhausted_pool_is_reported(self, env: IPAMEnvironment) -> None:
        """Both the pool and the claim report that the pool is exhausted.

        A waiting claim gets the next address that becomes free.

        Proves: IP-03, IP-05, IP-10.
        """
        pool = env.add_pool()
        keys = [env.add_claim(pool, f"a{number}") for number in range(5)]
        given = {await env.gets(key) for key in keys}
        assert given == {f"10.0.0.{number}" for number in range(2, 7)}
        late = env.add_claim(pool, "late")
        await env.says(late, "PoolExhausted")
        await env.pool_says(pool, "False", "PoolExhausted")
        await env.counts(pool, total=5, used=5, free=0)
        await env.quiet()
        assert env.api.written(CLAIM, late) == ["patch_status"]
        assert "finalizers" not in env.claim(late)["metadata"]

        address = env.address(keys[3])
        assert address is not None
        env.api.remove(CLAIM, keys[3])
        await env.goes(CLAIM, keys[3])
        assert await env.gets(late) == address["spec"]["address"]
        env.api.remove(CLAIM, late)
        await env.pool_says(pool, "True", "Ready")
        await env.counts(pool, total=5, used=4, free=1)

    @scenario
    async def test_a_larger_pool_serves_who_waits(self, env: IPAMEnvironment) -> None:
        pool = env.add_pool(ONE)
        keys = [env.add_claim(pool, name) for name in ("a1", "a2", "a3")]
        await env.pool_says(pool, "False", "PoolExhausted")
        env.api.change(env.kind.resource.kind, pool, {"spec": {"addresses": FIVE["addresses"]}})
        assert len({await env.gets(key) for key in keys}) == 3
        # An address that leaves the ranges of the pool stays with its claim.
        env.api.change(env.kind.resource.kind, pool, {"spec": {"addresses": ["10.0.0.6"]}})
        await env.counts(pool, total=1, used=0, free=1)
        assert len(set(env.given())) == 3

    @pytest.mark.parametrize(
        "fields",
        [
            {"addresses": ["10.0.0.300"], "prefix": 24},
            {"addresses": ["10.0.0.1", "2001:db8::1"], "prefix": 24},
            {"addresses": ["10.0.0.1"], "prefix": 64},
        ],
        ids=["no address", "two families", "wrong prefix"],
    )
    @scenario
    async def test_contradictory_fields_of_a_pool_are_reported(
        self, env: IPAMEnvironment, fields: dict[str, object]
    ) -> None:
        """A pool with contradictory fields reports them, and allocates nothing until they change.

        Proves: IP-03, IP-05.
        """
        pool = env.add_pool(fields)
        key = env.add_claim(pool)
        await env.pool_says(pool, "False", "InvalidSpec")
        await env.says(key, "PoolNotReady")
        assert env.given() == []

        env.api.change(env.kind.resource.kind, pool, {"spec": FIVE})
        await env.gets(key)
        await env.pool_says(pool, "True", "Ready")

    @scenario
    async def test_waiting_claims_report_that_the_pool_is_exhausted(
        self, env: IPAMEnvironment
    ) -> None:
        """If a pool becomes ready but is exhausted, the claims that waited for it report that.

        Proves: IP-05.
        """
        pool = env.add_pool({"addresses": ["10.0.0.300"], "prefix": 24})
        keys = [env.add_claim(pool, name) for name in ("a1", "a2")]
        for key in keys:
            await env.says(key, "PoolNotReady")
        env.api.change(env.kind.resource.kind, pool, {"spec": ONE})
        await env.eventually("one has it", lambda: any(map(env.has_address, keys)))
        (late,) = (key for key in keys if not env.has_address(key))
        await env.says(late, "PoolExhausted")
