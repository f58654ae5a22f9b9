"""A fake management cluster for IPAM, with claims as infrastructure providers create them."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.component import Component
from capsmith_runtime.ipam.allocation_store import read_allocation
from capsmith_runtime.ipam.kinds import PoolKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE
from capsmith_runtime.testing.environment import TestEnvironment, condition
from capsmith_runtime.testing.identities import add_identities, add_namespace, find_identity_kinds
from capsmith_runtime.testing.provider import KnowsAddresses, ProviderUnderTest, ServiceDouble

NAMESPACE = "default"
GROUP = "cluster.x-k8s.io"
IPAM = f"ipam.{GROUP}"
CLAIM, ADDRESS = "IPAddressClaim", "IPAddress"
CLUSTER_NAME = f"{GROUP}/cluster-name"
PAUSED = f"{GROUP}/paused"
PROTECT = f"{IPAM}/protect-address"
FIVE = {"addresses": ["10.0.0.0/29"], "prefix": 29, "gateway": "10.0.0.1"}
"""Spec fields of a pool with five addresses, not counting network, broadcast and gateway."""


class IPAMEnvironment(TestEnvironment):
    """A fake management cluster with IP pools, IPAddressClaims and Clusters."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        kind: PoolKind,
    ) -> None:
        super().__init__(provider, component, core_version)
        self.kind = kind
        self.address_system: ServiceDouble | None = None
        if CREDENTIALS_FEATURE in kind.features:
            kinds = find_identity_kinds(component)
            add_identities(self.api, self.manifests, kinds, component.namespace)

    @property
    def has_ranges(self) -> bool:
        """Return whether the pools allocate from ranges in their spec."""
        return "ranges" in self.kind.features

    def add_namespace(self, name: str) -> None:
        """Add a namespace with the identities that pools and claims in it need."""
        kinds = find_identity_kinds(self.component)
        add_namespace(self.api, kinds if CREDENTIALS_FEATURE in self.kind.features else (), name)

    def add_pool(
        self, fields: JSON | None = None, name: str = "p1", *, namespace: str = NAMESPACE
    ) -> NamespacedName:
        """Add a pool and return its key; it has five addresses unless ``fields`` sets others."""
        key = NamespacedName(namespace if self.kind.resource.namespaced else "", name)
        spec = self.manifests.sample_spec(self.kind.resource.kind)
        if self.has_ranges:
            spec = {**{k: v for k, v in spec.items() if k != "gateway"}, **(fields or FIVE)}
        self.api.add(
            {
                "apiVersion": self.kind.resource.api_version,
                "kind": self.kind.resource.kind,
                "metadata": _metadata(key),
                "spec": spec,
            }
        )
        return key

    def add_cluster(self, name: str = "c1", *, paused: bool = False) -> NamespacedName:
        """Add a Cluster, and return its key."""
        key = NamespacedName(NAMESPACE, name)
        self.api.add(
            {
                "apiVersion": f"{GROUP}/{self.api.core_version}",
                "kind": "Cluster",
                "metadata": _metadata(key),
                "spec": {"paused": True} if paused else {},
            }
        )
        return key

    def add_claim(
        self,
        pool: NamespacedName,
        name: str = "a1",
        *,
        namespace: str = NAMESPACE,
        cluster: str = "",
        **meta: Any,
    ) -> NamespacedName:
        """Add a claim on a pool and return its key; ``meta`` are additional metadata fields."""
        key = NamespacedName(namespace, name)
        self.api.add(
            {
                "apiVersion": f"{IPAM}/{self.api.core_version}",
                "kind": CLAIM,
                "metadata": {**_metadata(key), **meta},
                "spec": {
                    **({"clusterName": cluster} if cluster else {}),
                    "poolRef": self.reference(pool),
                },
            }
        )
        return key

    def add_address(
        self, pool: NamespacedName, name: str, address: str, claim: str = "unknown"
    ) -> NamespacedName:
        """Add an IPAddress as a user would, and return its key.

        ``claim`` is the name in its ``claimRef``; there need not be a claim with this name.
        """
        key = NamespacedName(NAMESPACE, name)
        self.api.add(
            {
                "apiVersion": f"{IPAM}/{self.api.core_version}",
                "kind": ADDRESS,
                "metadata": _metadata(key),
                "spec": {
                    "address": address,
                    "prefix": 29,
                    "claimRef": {"name": claim},
                    "poolRef": self.reference(pool),
                },
            }
        )
        return key

    def reference(self, pool: NamespacedName) -> JSON:
        """Return a ``poolRef`` for a claim on the pool."""
        resource = self.kind.resource
        return {"apiGroup": resource.group, "kind": resource.kind, "name": pool.name}

    def pool(self, key: NamespacedName) -> JSON:
        """Return the pool's current object; the test fails if it does not exist."""
        return self._there(self.kind.resource.kind, key)

    def claim(self, key: NamespacedName) -> JSON:
        """Return the claim's current object; the test fails if it does not exist."""
        return self._there(CLAIM, key)

    def address(self, key: NamespacedName) -> JSON | None:
        """Return the IPAddress with the claim's name, or None if there is none."""
        return self.api.find(ADDRESS, key)

    def given(self) -> list[str]:
        """Return the addresses of all IPAddresses that exist."""
        return [obj["spec"]["address"] for obj in self.api.all(ADDRESS)]

    def allocated(self) -> list[str]:
        """Return a name for each address that is allocated in the other system."""
        system: object = self.address_system
        assert isinstance(system, KnowsAddresses)
        return system.addresses()

    def has_address(self, key: NamespacedName) -> bool:
        """Return whether a claim's status names its address."""
        status = self.claim(key).get("status") or {}
        return bool((status.get("addressRef") or {}).get("name"))

    async def gets(self, key: NamespacedName) -> str:
        """Wait for a claim's address and return it; the test fails if the claim gets none."""
        await self.eventually(f"{key} has an address", lambda: self.has_address(key))
        address = self.address(key)
        assert address is not None
        return str(address["spec"]["address"])

    async def says(self, key: NamespacedName, reason: str) -> None:
        """Wait until a claim's Ready condition is False with ``reason``."""
        expected = "False", reason
        await self.eventually(
            f"{key} says {reason}", lambda: condition(self.claim(key), "Ready") == expected
        )

    async def pool_says(self, key: NamespacedName, status: str, reason: str) -> None:
        """Wait until a pool's Ready condition has this status and reason.

        For a kind whose CRD lacks ``status.conditions``, wait until the manager is quiet.
        """
        if not self.has_conditions(self.pool(key)):
            await self.quiet()
            return
        await self.eventually(
            f"{key} says {reason}", lambda: condition(self.pool(key), "Ready") == (status, reason)
        )

    def is_gone(self, kind: str, key: NamespacedName) -> bool:
        """Return whether an object no longer exists."""
        return self.api.find(kind, key) is None

    async def goes(self, kind: str, key: NamespacedName) -> None:
        """Wait until an object no longer exists."""
        await self.eventually(f"{key} is gone", lambda: self.api.find(kind, key) is None)

    async def counts(self, key: NamespacedName, **numbers: int) -> None:
        """Wait until a pool's status reports these counts.

        If the pools have no ranges, only the number of used addresses is compared; numbers that the
        CRD of the kind lacks are not.  If none is left, wait until the manager is quiet.
        """
        expected = numbers if self.has_ranges else {"used": numbers["used"]}
        path, pool = ("status", "addresses"), self.pool(key)
        expected = {each: n for each, n in expected.items() if self.has_field(pool, *path, each)}
        if not expected:
            await self.quiet()
            return
        await self.eventually(
            f"{key} counts {expected}",
            lambda: (self.pool(key).get("status") or {}).get("addresses") == expected,
        )

    async def settles(self, key: NamespacedName) -> None:
        """Wait until a pool has no pending reservations."""
        await self.eventually(
            f"{key} has no reservations",
            lambda: "reservations" not in read_allocation(self.kind.resource, self.pool(key)),
        )
        await self.quiet()

    def _there(self, kind: str, key: NamespacedName) -> JSON:
        found = self.api.find(kind, key)
        assert found is not None, f"{kind} {key} is gone"
        return found


def reference_to(owner: JSON) -> JSON:
    """Return the fields of an owner reference that identify the owner."""
    metadata = owner["metadata"]
    names = {"name": metadata["name"], "uid": metadata["uid"]}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **names}


def _metadata(key: NamespacedName) -> JSON:
    return {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
