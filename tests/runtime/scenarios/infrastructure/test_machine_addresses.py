"""Machines that get addresses from pools: their claims, and the reconciler's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.infrastructure.api import ClaimedAddress
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import NAMESPACE
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("complete")

GROUP = "cluster.x-k8s.io"
IPAM = f"ipam.{GROUP}"
CLAIM, ADDRESS = "IPAddressClaim", "IPAddress"
POOLS = [
    {"apiGroup": IPAM, "kind": "FooIPPool", "name": "four"},
    {"apiGroup": IPAM, "kind": "FooIPPool", "name": "six"},
]
GIVEN = (
    ClaimedAddress("10.0.0.7", 24, "10.0.0.1", "four"),
    ClaimedAddress("2001:db8::7", 64, None, "six"),
)
KEYS = [NamespacedName(NAMESPACE, f"m1-{index}") for index in range(len(POOLS))]
WAITING = ("False", "WaitingForIPAddress")

Seen = list[tuple[ClaimedAddress, ...]]


@run_with("complete")
class TestMachineAddresses(InfrastructureConformance):
    """Machines that get addresses from pools: their claims, and the reconciler's arguments."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return only kinds whose machines may name pools of addresses."""
        return [
            case
            for case in super().cases(provider)
            if "addressesFromPools" in case.machine_kind.features
        ]

    @scenario
    async def test_a_machine_gets_its_addresses(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Claims first, then their addresses, and only then the machine.

        Proves: IP-12, IP-13, RB-04.
        """
        seen = _seen(env, monkeypatch)
        key = await _machine(env)
        machine = env.core.infra_machine(key)
        for claim_key, pool in zip(KEYS, POOLS, strict=True):
            claim = await _claim(env, claim_key)
            assert claim["apiVersion"] == f"{IPAM}/{env.api.core_version}"
            assert claim["spec"] == {"clusterName": "c1", "poolRef": pool}
            assert claim["metadata"]["labels"] == {f"{GROUP}/cluster-name": "c1"}
            (owner,) = claim["metadata"]["ownerReferences"]
            assert owner == {
                "apiVersion": machine["apiVersion"],
                "kind": machine["kind"],
                "name": key.name,
                "uid": machine["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        await env.eventually(
            "it says so", lambda: condition(env.core.infra_machine(key), "Ready") == WAITING
        )
        assert env.infrastructure.servers() == []

        _answer(env, 0)
        await env.quiet()
        assert seen == []
        _answer(env, 1)
        await env.eventually("it is there", lambda: env.has_machine(key))
        assert set(seen) == {GIVEN}

    @scenario
    async def test_each_claim_is_one_request(self, env: InfrastructureEnvironment) -> None:
        await _machine(env)
        for index in range(len(POOLS)):
            await _claim(env, KEYS[index])
            _answer(env, index)
        await env.quiet()
        for _ in range(2):
            await env.restart()
            await env.quiet()
        assert [env.api.written(CLAIM, key) for key in KEYS] == [["create"], ["create"]]

    @scenario
    async def test_a_lost_owner_of_a_claim_comes_back(self, env: InfrastructureEnvironment) -> None:
        """Restore the owner of a claim of this machine's name and pools.

        Proves: SM-11, IP-12.
        """
        key = await _machine(env)
        before = {each: (await _claim(env, each))["metadata"]["ownerReferences"] for each in KEYS}
        await env.stop()
        for each in KEYS:
            env.api.change(CLAIM, each, {"metadata": {"ownerReferences": None}})
        env.start()
        await env.eventually(
            "they are owned", lambda: {each: _owners(env, each) for each in KEYS} == before
        )
        for index in range(len(POOLS)):
            _answer(env, index)
        await env.eventually("it is there", lambda: env.has_machine(key))

    @scenario
    async def test_the_owner_of_a_claim_has_the_stored_version(
        self, env: InfrastructureEnvironment
    ) -> None:
        """The garbage collector cannot look up owners in a version that is no longer served.

        Proves: IP-12, CRD-16.
        """
        await _machine(env)
        (now,) = (await _claim(env, KEYS[0]))["metadata"]["ownerReferences"]
        group = now["apiVersion"].partition("/")[0]
        before = {**now, "apiVersion": f"{group}/v0alpha1"}
        env.api.change(CLAIM, KEYS[0], {"metadata": {"ownerReferences": [before]}})
        await env.restart()
        await env.eventually("it is named", lambda: _owners(env, KEYS[0]) == [now])
        await env.quiet()
        assert env.api.written(CLAIM, KEYS[0]) == ["create", "patch"]

    @scenario
    async def test_a_machine_reports_why_it_has_no_address(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Proves: IP-05, IP-12."""
        key = await _machine(env)
        await _claim(env, KEYS[0])
        entry = {"type": "Ready", "status": "False", "reason": "PoolExhausted", "message": "full"}
        env.api.change(CLAIM, KEYS[0], {"status": {"conditions": [entry]}})
        await env.eventually("it says so", lambda: "PoolExhausted: full" in _message(env, key))

    @scenario
    async def test_a_machine_reports_that_a_quota_forbids_its_claim(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Only the machine is in the namespace of the user, and not the manager's log."""

        def refuse(verb: str, kind: str, body: JSON) -> None:
            if (verb, kind) == ("create", CLAIM):
                raise create_api_error(403, "Forbidden", "exceeded quota: claims")

        env.api.fault = refuse
        key = await _machine(env)
        await env.eventually("it says so", lambda: "exceeded quota: claims" in _message(env, key))
        ready = condition(env.core.infra_machine(key), "Ready")
        assert ready == ("False", "KubernetesRequestForbidden")

        env.api.fault = None
        await env.eventually("it is claimed", lambda: env.api.written(CLAIM, KEYS[0])[1:])

    @scenario
    async def test_a_claim_of_another_owner_is_not_used(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Proves: IP-12."""
        version = env.api.core_version
        metadata = {"namespace": KEYS[0].namespace, "name": KEYS[0].name}
        spec = {"poolRef": POOLS[0]}
        claim = {"apiVersion": f"{IPAM}/{version}", "kind": CLAIM, "spec": spec}
        env.api.add({**claim, "metadata": metadata})
        key = await _machine(env)
        await env.eventually("it says so", lambda: "not this machine's" in _message(env, key))
        assert env.api.written(CLAIM, KEYS[0]) == []
        assert env.infrastructure.servers() == []

        # Nothing about the other claim leads to the machine.
        await env.quiet()
        env.api.remove(CLAIM, KEYS[0])
        await env.eventually("it is claimed", lambda: env.api.written(CLAIM, KEYS[0]))

    @scenario
    async def test_claims_get_the_label_of_the_watch_filter(
        self, env: InfrastructureEnvironment
    ) -> None:
        """The provider of the pool may watch labelled claims only.

        Proves: MG-01.
        """
        filtered = {f"{GROUP}/watch-filter": "mine"}
        await _machine(env, {"metadata": {"labels": filtered}})
        claim = await _claim(env, KEYS[0])
        assert claim["metadata"]["labels"] == {f"{GROUP}/cluster-name": "c1", **filtered}


def _seen(env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Record the addresses that the reconciler gets, call by call."""
    found: Seen = []
    reconciler = env.machine_kind.reconciler
    original = reconciler.reconcile_normal

    def reconcile_normal(self: Any, machine: Any) -> Any:
        found.append(machine.ip_addresses)
        return original(self, machine)

    monkeypatch.setattr(reconciler, "reconcile_normal", reconcile_normal)
    return found


async def _machine(
    env: InfrastructureEnvironment, change: dict[str, Any] | None = None
) -> NamespacedName:
    """Add a machine with pools, and provision its cluster after that."""
    cluster = env.core.add_cluster("c1")
    await env.cluster_is_provisioned(cluster)
    key = env.core.add_machine(cluster, "m1")
    pools = {"spec": {"addressesFromPools": POOLS}, **(change or {})}
    env.api.change(env.machine_kind.resource.kind, key, pools)
    env.core.infrastructure_is_ready(cluster)
    return key


async def _claim(env: InfrastructureEnvironment, key: NamespacedName) -> JSON:
    """Wait for a claim, and return it."""
    await env.eventually(f"{key} is claimed", lambda: env.api.find(CLAIM, key))
    found = env.api.find(CLAIM, key)
    assert found is not None
    return found


def _answer(env: InfrastructureEnvironment, index: int) -> None:
    """Answer a claim as the provider of the pool does."""
    key, given = KEYS[index], GIVEN[index]
    gateway = {"gateway": given.gateway} if given.gateway else {}
    spec = {"address": given.address, "prefix": given.prefix, **gateway}
    claim = {"claimRef": {"name": key.name}, "poolRef": POOLS[index]}
    env.api.add(
        {
            "apiVersion": f"{IPAM}/{env.api.core_version}",
            "kind": ADDRESS,
            "metadata": {"namespace": key.namespace, "name": key.name},
            "spec": {**spec, **claim},
        }
    )
    env.api.change(CLAIM, key, {"status": {"addressRef": {"name": key.name}}})


def _owners(env: InfrastructureEnvironment, key: NamespacedName) -> list[JSON]:
    found = env.api.find(CLAIM, key) or {}
    owners: list[JSON] = found.get("metadata", {}).get("ownerReferences", [])
    return owners


def _message(env: InfrastructureEnvironment, key: NamespacedName) -> str:
    """Return the message of the Ready condition."""
    for entry in (env.core.infra_machine(key).get("status") or {}).get("conditions", ()):
        if entry["type"] == "Ready":
            return str(entry.get("message", ""))
    return ""
