"""Informers and queues of a component on the fake API server, without controllers.

A test changes an object and sees which keys that puts into which queue, and how many cached objects
were read to find them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import pytest

from capsmith_runtime.builder import ManagerBuilder
from capsmith_runtime.component import Component
from capsmith_runtime.contract.versions import choose
from capsmith_runtime.kube import encoded_objects
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.store import Cache
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.options import Options
from capsmith_runtime.reconcile.caches import WatchScope
from capsmith_runtime.testing.fake_api import FakeApi

TURN_SECONDS = 0.01
"""On the virtual clock: it passes when all watches have delivered their events."""


@dataclass
class Woken:
    """The queues of a component, by kind."""

    builder: ManagerBuilder
    queues: dict[str, WorkQueue[NamespacedName]] = field(init=False)

    def __post_init__(self) -> None:
        self.queues = {one.name: one.queue for one in self.builder.controllers}

    async def keys(self, kind: str) -> list[str]:
        """Take all names that wait in a queue, in the order in which workers would get them."""
        await asyncio.sleep(TURN_SECONDS)
        queue, found = self.queues[kind], []
        while len(queue):
            key = await queue.get()
            queue.done(key)
            found.append(key.name)
        return found

    async def reconcile(self, kind: str) -> None:
        """Reconcile the objects of one kind that wait in its queue, once each."""
        (controller,) = (one for one in self.builder.controllers if one.name == kind)
        worker = asyncio.create_task(controller.run())
        await asyncio.sleep(TURN_SECONDS)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)

    async def forget(self) -> None:
        """Empty all queues."""
        for kind in self.queues:
            await self.keys(kind)


@asynccontextmanager
async def woken(component: Component, api: FakeApi) -> AsyncIterator[Woken]:
    """Run the informers of a component; nothing takes keys from its queues."""
    scope = WatchScope(own_namespace=component.namespace)
    reader = choose([api.core_version])
    builder = ManagerBuilder(component, Options(), api, Metrics(), reader, scope)
    tasks = [asyncio.create_task(informer.run()) for informer in builder.informers]
    try:
        for informer in builder.informers:
            await informer.synced.wait()
        yield Woken(builder)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def counted_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the objects that are read by an index; the list holds one number."""
    count, original = [0], Cache.by_index

    def by_index(self: Cache, name: str, value: str) -> Sequence[JSON]:
        found = original(self, name, value)
        count[0] += len(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Cache, "by_index", by_index)
        yield count


@contextmanager
def counted_decodings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the cached objects that are decoded; the list holds one number."""
    count, original = [0], encoded_objects._Decoded

    def decode(obj: JSON) -> JSON:
        count[0] += 1
        return original(obj)

    with monkeypatch.context() as patch:
        patch.setattr(encoded_objects, "_Decoded", decode)
        yield count
