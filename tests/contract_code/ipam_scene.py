"""A pool, its desk and the server behind it, for tests of who gets which address when."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from capsmith_generated.address_ranges import AddressRanges, address_of
from capsmith_generated.contract.ipam_versions import DIALECTS
from capsmith_generated.controllers.ipam.book import Book, PoolKey
from capsmith_generated.controllers.ipam.census import Census
from capsmith_generated.controllers.ipam.desk import Desk, Office, Request
from capsmith_generated.results import Waiting
from capsmith_generated.runtime.client import JSON, Key, KubeClient, ResourceType, Selection
from capsmith_generated.runtime.informer import Informer

from tests.contract_code.scheduled_api import Client, Server

POOL_TYPE = ResourceType("ipam.example.com", "v1", "FooPool", "foopools")
CLAIM_TYPE = ResourceType("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim", "ipaddressclaims")
ADDRESS_TYPE = ResourceType("ipam.cluster.x-k8s.io", "v1beta2", "IPAddress", "ipaddresses")
POOL = PoolKey("FooPool", Key("default", "pool"))
REFERENCE = {"apiGroup": POOL_TYPE.group, "kind": POOL_TYPE.kind, "name": "pool"}


class Known:
    """A cache that knows what it is told."""

    def __init__(self, resource: ResourceType) -> None:
        self.resource = resource
        self.seen = 0
        self._objects: dict[Key, JSON] = {}

    def get(self, key: Key) -> JSON | None:
        return self._objects.get(key)

    def remember(self, obj: JSON) -> None:
        metadata = obj["metadata"]
        self._objects[Key(metadata.get("namespace", ""), metadata["name"])] = obj


class Scene:
    """A pool of two addresses and a desk; ``other`` is what else happens on the server."""

    def __init__(self) -> None:
        self.server = Server()
        self.client = Client(self.server)
        self.pools, self.claims, self.addresses = map(Known, (POOL_TYPE, CLAIM_TYPE, ADDRESS_TYPE))
        addresses = cast(Informer, self.addresses)
        client = cast(KubeClient, self.client)
        self.book = Book([POOL_TYPE], DIALECTS["v1beta2"], addresses)
        self.census = Census(client, ADDRESS_TYPE, Selection(), self.book)
        self.woken: list[PoolKey] = []
        office = Office(
            client=client,
            book=self.book,
            census=self.census,
            claims=cast(Informer, self.claims),
            addresses=addresses,
            wake=self.woken.append,
            identity="me",
        )
        self.pools.remember(self.server.create(object_of(POOL_TYPE, "pool", {})))
        self.ledger = self.book.ledger(POOL)
        self.ledger.open(AddressRanges.of(["10.0.0.1-10.0.0.2"], 24))
        self.desk = Desk(POOL, cast(Informer, self.pools), office)

    def claim(self, name: str) -> Request:
        claim = self.server.create(object_of(CLAIM_TYPE, name, {"poolRef": REFERENCE}))
        self.claims.remember(claim)
        return Request(Key("default", name), claim["metadata"]["uid"])

    def address(self, name: str, text: str, **metadata: Any) -> JSON:
        spec = {"address": text, "claimRef": {"name": name}, "poolRef": REFERENCE}
        made = object_of(ADDRESS_TYPE, name, spec)
        made["metadata"] |= metadata
        return self.server.create(made)

    async def reserve(self, request: Request) -> str:
        """The address that is given, while everything arrives."""
        task = asyncio.ensure_future(self.desk.reserve(request))
        for _ in range(100):
            await asyncio.sleep(0.001)
            self.answer_all()
        assert task.done(), "it goes on for ever"
        number = task.result()
        return number.reason if isinstance(number, Waiting) else str(address_of(number))

    def answer_all(self) -> None:
        for request in self.server.requests[:]:
            request.arrive()
            self.server.requests.remove(request)
            request.get_through()

    async def sent(self) -> list[str]:
        """First words of what waits for an answer."""
        await asyncio.sleep(0.001)
        return [" ".join(request.words.split()[:2]) for request in self.server.requests]

    def somebody_else_takes_over(self) -> None:
        status = {"status": {"allocation": {"holder": "somebody else"}}}
        self.server.patch("FooPool", POOL.key, status)


def object_of(resource: ResourceType, name: str, spec: JSON) -> JSON:
    metadata = {"namespace": "default", "name": name}
    kinds = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kinds, "metadata": metadata, "spec": spec}
