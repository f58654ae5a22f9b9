"""Informers, each of which keeps a cache of one kind up to date by a paged list and a watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from capsmith_runtime.errors import ApiError, ResourceExpiredError, error_label
from capsmith_runtime.kube.client import (
    EVERYTHING,
    JSON,
    KubeClient,
    NamespacedName,
    ResourceType,
    Selection,
    WatchEvent,
    version_of,
)
from capsmith_runtime.kube.clock import Backoff, monotonic
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.store import Cache, Delta, IndexFunction, Projection, keep_metadata

_PAGE = 250
_BATCH = 250
"""Number of objects to cache from the first list before yielding to the event loop."""
# A watch that ends earlier than this without an event is a failure, not the server's time-out.
_SHORT_SECONDS = 1.0

Handler = Callable[[Delta], None]


class Informer:
    """A cache for one kind, or for a selection of its objects.

    `run` updates it until cancelled.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: ResourceType,
        metrics: Metrics,
        *,
        selection: Selection = EVERYTHING,
        projection: Projection | None = None,
        indexes: Mapping[str, IndexFunction] = {},
        backoff: Backoff | None = None,
        absent: str = "",
    ) -> None:
        """Initialise an empty cache.

        ``absent`` is advice that is logged if the API server does not serve the kind. If the
        selection is ``metadata_only``, responses to writes are reduced to their metadata as well.
        """
        self.resource = resource
        self.synced = asyncio.Event()
        """Event that is set once the first list is in the cache, and stays set."""
        self._client = client
        self._metrics = metrics
        self._selection = selection
        if selection.metadata_only and projection is None:
            projection = keep_metadata
        self._cache = Cache(projection, indexes)
        self._absent = absent
        self._backoff = backoff or Backoff(base=0.5, limit=15.0)
        self._handlers: list[tuple[Handler, bool]] = []
        self._outdated, self._refreshed = asyncio.Event(), asyncio.Event()
        metrics.informer_objects.labels(resource.kind).set_function(self._cache.__len__)
        self._log = get_logger("informer", kind=resource.kind)

    def add_handler(self, handler: Handler, *, own_writes: bool = True) -> None:
        """Call `handler` on the event loop for each change; the handler must not block.

        If `own_writes` is False, the handler is not called for changes from `update_from_write`.
        Use that to queue the object itself, because its reconcile already knows its own writes.
        """
        self._handlers.append((handler, own_writes))

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Add an index.

        Call this before the informer runs, as existing objects are not indexed.
        """
        self._cache.add_index(name, function)

    @property
    def seen(self) -> int:
        """Return the resource version up to which the cache is complete."""
        return self._cache.seen

    def get(self, key: NamespacedName) -> JSON | None:
        """Return the cached object, or None if it is not cached.

        The object is shared: copy it before you change anything.
        """
        return self._cache.get(key)

    def items(self) -> list[JSON]:
        """Return all cached objects in no particular order; they are shared: do not change them."""
        return self._cache.items()

    def by_index(self, index: str, value: str) -> list[JSON]:
        """Return the cached objects for which the index function `index` yielded `value`."""
        return self._cache.by_index(index, value)

    def update_from_write(self, obj: JSON) -> None:
        """Store the response to one of this process's writes, so that the next read returns it.

        Call this before the reconcile continues: a read that misses the write could repeat an
        action, such as the creation of a server.
        """
        change = self._cache.update_from_write(self._cache.project(obj))
        if change is not None:
            self._notify(change, own=True)

    async def refresh(self) -> None:
        """Wait until the cache is at least as new as the API server was at the time of the call.

        This replaces the watch by a new list, which is expensive: only a new leader does it, once.
        """
        self._refreshed.clear()
        self._outdated.set()
        await self._refreshed.wait()

    async def run(self) -> None:
        """List and watch until cancelled; retry failures with back-off."""
        listed = False
        while True:
            cause = "ended"
            wait = 0.0
            began, before = monotonic(), self._cache.seen
            try:
                if not listed:
                    self._outdated.clear()
                    await self._list()
                    listed = True
                    # A list that began before a call of `refresh` does not count.
                    if not self._outdated.is_set():
                        self._refreshed.set()
                await self._watch_until_outdated()
                if self._outdated.is_set():
                    listed = False
                    continue
                # Servers and proxies end every watch after minutes, which is no failure.  Watches
                # that end immediately and without an event would make this a busy loop.
                if monotonic() - began < _SHORT_SECONDS and self._cache.seen == before:
                    wait = self._backoff.next()
            except ResourceExpiredError:
                cause, listed, wait = "gone", False, self._backoff.next()
            except ApiError as error:
                cause, wait = error_label(error), self._backoff.next(error.retry_after)
                # Connections break whenever an API server is rolled: a broken watch alone needs no
                # attention.
                level = self._log.info if error.status == 0 and listed else self._log.warning
                hint: dict[str, Any] = (
                    {"hint": self._absent} if self._absent and error.status == 404 else {}
                )
                level("watch interrupted", error=str(error), retry_seconds=round(wait, 2), **hint)
            self._metrics.informer_restarts.labels(self.resource.kind, cause).inc()
            # A new leader waits for `refresh`, which therefore ends the back-off.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._outdated.wait()

    async def _list(self) -> None:
        objects: list[JSON] = []
        token, limit = "", _PAGE
        while True:
            try:
                page = await self._client.list_page(
                    self.resource, self._selection, limit=limit, token=token
                )
            except ResourceExpiredError:
                if not token:
                    raise
                # The remaining pages have expired, as etcd was compacted in the meantime: request
                # the whole list in one response, which cannot expire.
                objects, token, limit = [], "", 0
                continue
            added = [self._cached_part(item) for item in page.items]
            objects += added
            # The first list is cached page by page: no controller reads the cache before `synced`.
            if not self.synced.is_set():
                await self._add(added)
            token = page.token
            if not token:
                break
        # Later lists have few changes, which must not be mixed with this
        # process's own writes.
        for change in self._cache.replace(objects, int(page.resource_version)):
            self._notify(change)
        self._backoff.reset()
        self.synced.set()

    def _cached_part(self, item: JSON) -> JSON:
        # Items of a list have no apiVersion and kind.
        item.setdefault("apiVersion", self.resource.api_version)
        item.setdefault("kind", self.resource.kind)
        return self._cache.project(item)

    async def _add(self, objects: Sequence[JSON]) -> None:
        """Cache objects from the first list in batches, to keep the event loop responsive."""
        for number, obj in enumerate(objects, 1):
            change = self._cache.observe(obj)
            if change is not None:
                self._notify(change)
            if number % _BATCH == 0:
                await asyncio.sleep(0)

    async def _watch_until_outdated(self) -> None:
        # `refresh` must be able to end a watch that would go on for minutes.
        watch = asyncio.create_task(self._watch())
        outdated = asyncio.create_task(self._outdated.wait())
        try:
            await asyncio.wait((watch, outdated), return_when=asyncio.FIRST_COMPLETED)
            if watch.done():
                watch.result()
        finally:
            for task in (watch, outdated):
                task.cancel()
            await asyncio.gather(watch, outdated, return_exceptions=True)

    async def _watch(self) -> None:
        events = self._client.watch(
            self.resource, self._selection, resource_version=str(self._cache.seen)
        )
        # Without this, the connection of a cancelled watch stays open until the garbage collector
        # finalizes the generator.
        async with contextlib.aclosing(events) as stream:
            async for event in stream:
                self._take(event)
                self._backoff.reset()

    def _take(self, event: WatchEvent) -> None:
        # Without bookmarks the version of a quiet kind would expire, and each new watch list again.
        if event.type == "BOOKMARK":
            self._cache.seen = max(self._cache.seen, version_of(event.object))
            return
        obj = self._cache.project(event.object)
        deleted = event.type == "DELETED"
        change = self._cache.observe_deleted(obj) if deleted else self._cache.observe(obj)
        if change is not None:
            self._notify(change)

    def _notify(self, change: Delta, own: bool = False) -> None:
        for handler, own_writes in self._handlers:
            if own and not own_writes:
                continue
            try:
                handler(change)
            except Exception as error:
                # A failing handler must not stop the informer for all others.
                self._log.error("handler failed", error=repr(error), exc_info=error)
