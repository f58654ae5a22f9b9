"""A pool with its allocator and the server behind it, for tests of the order of allocations."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from capsmith_runtime.contract.ipam import DIALECTS
from capsmith_runtime.ipam.address_index import AddressIndex, PoolKey
from capsmith_runtime.ipam.address_ranges import AddressRanges, address_of
from capsmith_runtime.ipam.allocator import (
    AddressRequest,
    AllocatorContext,
    LiveAddressList,
    PoolAllocator,
)
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType, Selection
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.results import Waiting
from tests.runtime.support.scheduled_api import Client, Server

POOL_TYPE = ResourceType("ipam.example.com", "v1", "FooPool", "foopools")
CLAIM_TYPE = ResourceType("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim", "ipaddressclaims")
ADDRESS_TYPE = ResourceType("ipam.cluster.x-k8s.io", "v1beta2", "IPAddress", "ipaddresses")
POOL = PoolKey("FooPool", NamespacedName("default", "pool"))
REFERENCE = {"apiGroup": POOL_TYPE.group, "kind": POOL_TYPE.kind, "name": "pool"}


def outcome(reserved: int | Waiting) -> str:
    """Return the reserved address, or the reason of the wait."""
    return reserved.reason if isinstance(reserved, Waiting) else str(address_of(reserved))


class StaticCache:
    """A cache that holds what the test puts into it."""

    def __init__(self, resource: ResourceType) -> None:
        self.resource = resource
        self.seen = 0
        self._objects: dict[NamespacedName, JSON] = {}

    def get(self, key: NamespacedName) -> JSON | None:
        return self._objects.get(key)

    def update_from_write(self, obj: JSON) -> None:
        metadata = obj["metadata"]
        self._objects[NamespacedName(metadata.get("namespace", ""), metadata["name"])] = obj


class AllocatorEnvironment:
    """A pool of two addresses, its allocator, and what other managers do on the server."""

    def __init__(self) -> None:
        self.server = Server()
        self.client = Client(self.server)
        types = (POOL_TYPE, CLAIM_TYPE, ADDRESS_TYPE)
        self.pools, self.claims, self.addresses = map(StaticCache, types)
        addresses = cast(Informer, self.addresses)
        client = cast(KubeClient, self.client)
        self.index = AddressIndex([POOL_TYPE], DIALECTS["v1beta2"], addresses)
        self.live_list = LiveAddressList(client, ADDRESS_TYPE, (Selection(),), self.index)
        self.requeued: list[PoolKey] = []
        context = AllocatorContext(
            client=client,
            index=self.index,
            live_list=self.live_list,
            claims=cast(Informer, self.claims),
            addresses=addresses,
            requeue_claims=self.requeued.append,
            identity="me",
        )
        self.pools.update_from_write(self.server.create(object_of(POOL_TYPE, "pool", {})))
        self.usage = self.index.usage(POOL)
        self.usage.open(AddressRanges.of(["10.0.0.1-10.0.0.2"], 24))
        self.allocator = PoolAllocator(POOL, cast(Informer, self.pools), context)

    def claim(self, name: str) -> AddressRequest:
        claim = self.server.create(object_of(CLAIM_TYPE, name, {"poolRef": REFERENCE}))
        self.claims.update_from_write(claim)
        return AddressRequest(NamespacedName("default", name), claim["metadata"]["uid"])

    def address(self, name: str, text: str, **metadata: Any) -> JSON:
        spec = {"address": text, "claimRef": {"name": name}, "poolRef": REFERENCE}
        obj = object_of(ADDRESS_TYPE, name, spec)
        obj["metadata"] |= metadata
        return self.server.create(obj)

    async def reserve(self, request: AddressRequest) -> str:
        """Return the reserved address, or the reason of the wait, while all requests succeed."""
        task = asyncio.ensure_future(self.allocator.reserve(request))
        for _ in range(100):
            await asyncio.sleep(0.001)
            self.answer_all()
        assert task.done(), "it goes on forever"
        return outcome(task.result())

    def answer_all(self) -> None:
        for request in self.server.requests[:]:
            request.arrive()
            self.server.requests.remove(request)
            request.get_through()

    async def sent(self) -> list[str]:
        """Return verb and kind of each request without an answer."""
        await asyncio.sleep(0.001)
        return [" ".join(request.words.split()[:2]) for request in self.server.requests]

    def let_another_manager_take_over(self) -> None:
        status = {"status": {"allocation": {"holder": "another manager"}}}
        self.server.patch("FooPool", POOL.key, status)


def object_of(resource: ResourceType, name: str, spec: JSON) -> JSON:
    metadata = {"namespace": "default", "name": name}
    kinds = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kinds, "metadata": metadata, "spec": spec}
