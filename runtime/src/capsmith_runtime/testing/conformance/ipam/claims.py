"""Lifecycle of claims and addresses, and what each of them waits for."""

from __future__ import annotations

import pytest

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance, RangedIPAMConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.ipam.environment import (
    ADDRESS,
    CLAIM,
    CLUSTER_NAME,
    IPAM,
    NAMESPACE,
    PAUSED,
    PROTECT,
    IPAMEnvironment,
    reference_to,
)

CLAIM_REQUESTS = ["patch", "patch_status"]
"""Verbs of the expected requests for a claim: one for its finalizer, one for its status."""
ONE = {"addresses": ["10.0.0.2"], "prefix": 29}


class TestAddressClaims(IPAMConformance):
    """Lifecycle of claims and addresses, and what each of them waits for."""

    @scenario
    async def test_a_claim_gets_an_address(self, env: IPAMEnvironment) -> None:
        """A claim gets an IPAddress, then a status that names it.

        The IPAddress has the name, owners, finalizer and spec that the contract requires.

        Proves: IP-05, IP-06, IP-07, IP-08, IP-09, RB-04.
        """
        pool = env.add_pool()
        env.add_cluster("c1")
        key = env.add_claim(pool, cluster="c1")
        text = await env.gets(key)
        claim, address = env.claim(key), env.address(key)
        assert address is not None
        assert address["apiVersion"] == f"{IPAM}/{env.api.core_version}"
        assert address["metadata"]["finalizers"] == [PROTECT]
        assert address["metadata"]["labels"] == {CLUSTER_NAME: "c1"}
        assert address["metadata"]["ownerReferences"] == [
            {**reference_to(claim), "controller": True, "blockOwnerDeletion": True},
            {**reference_to(env.pool(pool)), "controller": False, "blockOwnerDeletion": True},
        ]
        spec = address["spec"]
        assert spec["address"] == text
        assert spec["claimRef"] == {"name": key.name}
        assert spec["poolRef"] == env.reference(pool)
        assert isinstance(spec["prefix"], int)
        assert claim["status"]["addressRef"] == {"name": key.name}
        assert claim["metadata"]["finalizers"] == [env.kind.finalizer]
        assert condition(claim, "Ready") == ("True", "Ready")
        (entry,) = claim["status"]["conditions"]
        assert ("message" in entry) is (env.api.core_version != "v1beta1")

    @scenario
    async def test_a_claim_costs_few_requests(self, env: IPAMEnvironment) -> None:
        pool = env.add_pool()
        await env.quiet()
        env.api.requests.clear()
        key = env.add_claim(pool)
        await env.gets(key)
        await env.quiet()
        assert env.api.written(CLAIM, key) == CLAIM_REQUESTS
        assert env.api.written(ADDRESS, key) == ["create"]
        # One write each for the holder, the reservation and its removal, for all claims together.
        assert len(env.api.written(env.kind.resource.kind, pool)) <= 3

    @scenario
    async def test_claims_on_other_pools_are_left_alone(self, env: IPAMEnvironment) -> None:
        """A claim on another provider's pool is not changed and gets no address.

        Proves: IP-08.
        """
        pool = env.add_pool()
        foreign = {"apiGroup": "ipam.example.com", "kind": env.kind.resource.kind, "name": "p1"}
        key = env.add_claim(pool)
        await env.gets(key)
        other = env.add_claim(pool, "other")
        env.api.remove(CLAIM, other)
        env.api.requests.clear()
        claim = {**env.claim(key), "spec": {"poolRef": foreign}}
        claim["metadata"] = {"namespace": NAMESPACE, "name": "foreign"}
        claim.pop("status")
        env.api.add(claim)
        await env.quiet()
        assert env.api.written(CLAIM, NamespacedName(NAMESPACE, "foreign")) == []
        assert env.address(NamespacedName(NAMESPACE, "foreign")) is None

    @scenario
    async def test_a_claim_waits_for_its_pool(self, env: IPAMEnvironment) -> None:
        """A claim reports that its pool does not exist, and gets an address once it does.

        Proves: IP-05.
        """
        key = env.add_claim(NamespacedName("", "p1"))
        await env.says(key, "PoolNotReady")
        env.add_pool()
        await env.gets(key)

    @pytest.mark.parametrize("what", ["spec", "cluster", "claim", "pool"])
    @scenario
    async def test_what_is_paused_is_left_alone(self, env: IPAMEnvironment, what: str) -> None:
        """While the Cluster, the claim or the pool is paused, no address is allocated or released.

        Proves: SM-01, IP-08, IP-10, MV-08.
        """
        pool, cluster = env.add_pool(), env.add_cluster()
        there = env.add_claim(pool, "there", cluster=cluster.name)
        await env.gets(there)
        new, old = NamespacedName(NAMESPACE, "new"), there
        annotation = {"metadata": {"annotations": {PAUSED: ""}}}
        if what == "spec":
            env.api.change("Cluster", cluster, {"spec": {"paused": True}})
        elif what == "cluster":
            env.api.change("Cluster", cluster, annotation)
        elif what == "claim":
            env.api.change(CLAIM, there, annotation)
        else:
            env.api.change(env.kind.resource.kind, pool, annotation)
        await env.quiet()
        annotations = {PAUSED: ""} if what == "claim" else {}
        env.add_claim(pool, new.name, cluster=cluster.name, annotations=annotations)
        env.api.remove(CLAIM, old)
        await env.quiet()
        assert env.address(new) is None
        assert env.address(old) is not None
        assert env.claim(old)["metadata"]["finalizers"]

        no_annotation = {"metadata": {"annotations": {PAUSED: None}}}
        if what == "spec":
            env.api.change("Cluster", cluster, {"spec": {"paused": None}})
        elif what == "cluster":
            env.api.change("Cluster", cluster, no_annotation)
        elif what == "pool":
            env.api.change(env.kind.resource.kind, pool, no_annotation)
        else:
            for key in (old, new):
                env.api.change(CLAIM, key, no_annotation)
        await env.gets(new)
        await env.goes(CLAIM, old)
        assert env.address(old) is None

    @scenario
    async def test_a_named_cluster_must_exist(self, env: IPAMEnvironment) -> None:
        """A claim waits until the Cluster that it names exists.

        The claim may name the Cluster in its spec, or in the label that was used before the spec
        had a field.

        Proves: IP-08, IP-10.
        """
        pool = env.add_pool()
        by_spec = env.add_claim(pool, "a1", cluster="c1")
        by_label = env.add_claim(pool, "a2", labels={CLUSTER_NAME: "c1"})
        await env.quiet()
        assert env.given() == []

        env.add_cluster("c1")
        assert await env.gets(by_spec) != await env.gets(by_label)
        # A claim that is deleted after its Cluster still releases its address.
        env.api.remove("Cluster", NamespacedName(NAMESPACE, "c1"))
        for key in (by_spec, by_label):
            env.api.remove(CLAIM, key)
            await env.goes(CLAIM, key)
        assert env.given() == []

    @scenario
    async def test_a_released_address_is_free_again(self, env: IPAMEnvironment) -> None:
        """A deleted claim releases its address before it loses its finalizer.

        The address can then be allocated again.

        Proves: IP-10, SM-08.
        """
        pool = env.add_pool()
        key = env.add_claim(pool)
        await env.gets(key)
        await env.quiet()
        env.api.requests.clear()
        env.api.remove(CLAIM, key)
        await env.goes(CLAIM, key)
        await env.counts(pool, total=5, used=0, free=5)
        assert env.given() == []
        sent = [(verb, kind) for verb, kind, on in env.api.requests if on == key]
        order = [(verb, kind) for verb, kind in sent if verb != "get"]
        assert order == [("patch", ADDRESS), ("delete", ADDRESS), ("patch", CLAIM)]


class TestAddressClaimsWithRanges(RangedIPAMConformance):
    """Claims on pools that allocate from ranges in their spec."""

    @scenario
    async def test_claims_are_served_in_order_of_arrival(self, env: IPAMEnvironment) -> None:
        pool = env.add_pool(ONE)
        holder = env.add_claim(pool, "holder")
        await env.gets(holder)
        names = ["zoe", "adam", "mia"]
        for name in names:
            await env.says(env.add_claim(pool, name), "PoolExhausted")
        # A deleted claim does not keep the others waiting.
        env.api.remove(CLAIM, NamespacedName(NAMESPACE, "adam"))
        for name in ("zoe", "mia"):
            env.api.remove(CLAIM, holder)
            holder = NamespacedName(NAMESPACE, name)
            assert await env.gets(holder) == "10.0.0.2"


class TestOrphanedAddresses(IPAMConformance):
    """Addresses created by others, owned by other claims, or left behind by their claim."""

    @scenario
    async def test_an_address_of_that_name_may_have_another_owner(
        self, env: IPAMEnvironment
    ) -> None:
        """A claim reports a conflict and waits if another claim owns the IPAddress with its name.

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

        The test removes the claim's finalizer by hand.

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
        """The address of an earlier claim with the same name is deleted.

        Another controller's finalizer delays the deletion, which the new claim waits for.

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
