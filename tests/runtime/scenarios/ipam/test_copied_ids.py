"""Claims and addresses with the external id of another claim, as users can copy it."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.ipam import AddressClaim, AddressRelease, ExternalPoolReconciler
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.ipam.base import IPAMConformance
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.ipam.environment import ADDRESS, CLAIM, IPAMEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("managed")
ELSEWHERE = "elsewhere"


@run_with("managed")
class TestCopiedExternalIds(IPAMConformance):
    """Another tenant's object must not allocate or release the address of the id's claim."""

    @pytest.fixture(autouse=True)
    def calls(
        self, case: KindCase[PoolKind], monkeypatch: pytest.MonkeyPatch
    ) -> list[tuple[str, str, str]]:
        """Return the calls of the reconciler: method, namespace and external id of the claim."""
        calls: list[tuple[str, str, str]] = []
        reconciler = case.kind.reconciler
        assert issubclass(reconciler, ExternalPoolReconciler)
        allocate, release = reconciler.allocate, reconciler.release

        def record_allocate(self: Any, claim: AddressClaim[Any]) -> Any:
            calls.append(("allocate", claim.namespace, claim.external_id))
            return allocate(self, claim)

        def record_release(self: Any, claim: AddressRelease) -> Any:
            calls.append(("release", claim.namespace, claim.external_id))
            return release(self, claim)

        monkeypatch.setattr(reconciler, "allocate", record_allocate)
        monkeypatch.setattr(reconciler, "release", record_release)
        return calls

    @scenario
    async def test_a_claim_with_the_id_of_another_is_not_served(
        self, env: IPAMEnvironment, calls: list[tuple[str, str, str]]
    ) -> None:
        pool = env.add_pool()
        first = env.add_claim(pool)
        await env.gets(first)
        copy = _add_copy(env, env.claim(first), finalizers=True)
        _add_pool_copy(env, pool)
        await env.eventually(
            "the copy says why",
            lambda: condition(env.claim(copy), "Ready") == ("False", "ExternalIDTaken"),
        )
        env.api.remove(CLAIM, copy)
        await env.quiet()
        assert [call for call in calls if call[1] == ELSEWHERE] == []

        env.api.remove(CLAIM, first)
        await env.goes(CLAIM, first)
        await env.goes(CLAIM, copy)

    @scenario
    async def test_an_address_with_the_id_of_another_claim_releases_nothing(
        self, env: IPAMEnvironment, no_grace: None, calls: list[tuple[str, str, str]]
    ) -> None:
        pool = env.add_pool()
        first = env.add_claim(pool)
        await env.gets(first)
        await env.quiet()
        address = env.address(first)
        assert address is not None
        _add_pool_copy(env, pool)
        copy = _add_copy(env, address, finalizers=True)
        await env.goes(ADDRESS, copy)
        assert [call for call in calls if call[0] == "release"] == []


def _add_copy(env: IPAMEnvironment, obj: JSON, *, finalizers: bool) -> NamespacedName:
    """Add a copy of an object in another namespace, with its name and annotations."""
    kept = ["name", "annotations", "ownerReferences", *(["finalizers"] if finalizers else [])]
    metadata = {name: obj["metadata"][name] for name in kept if name in obj["metadata"]}
    head = {name: obj[name] for name in ("apiVersion", "kind", "spec")}
    env.api.add({**head, "metadata": {**metadata, "namespace": ELSEWHERE}})
    return NamespacedName(ELSEWHERE, metadata["name"])


def _add_pool_copy(env: IPAMEnvironment, pool: NamespacedName) -> None:
    if env.kind.resource.namespaced:
        _add_copy(env, env.pool(pool), finalizers=False)
