"""Lists and watches one selection, to keep one kind's cache up to date."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from capsmith_runtime.errors import ApiError, ResourceExpiredError, error_label
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    Page,
    ResourceType,
    Selection,
    WatchEvent,
    version_of,
)
from capsmith_runtime.kube.clock import Backoff, monotonic
from capsmith_runtime.kube.encoded_objects import EncodedObjects
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.store import Cache, Delta

_PAGE = 250
_BATCH = 250
"""Number of listed objects to take before yielding to the event loop."""
# A watch that ends earlier than this without an event is a failure, not the server's time-out.
_SHORT_SECONDS = 1.0


class Reflector:
    """Lists and watches one selection of a kind; an informer has one for each namespace.

    `run` updates the cache until cancelled.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: ResourceType,
        metrics: Metrics,
        cache: Cache,
        notify: Callable[[Delta], None],
        on_listed: Callable[[], None],
        *,
        selection: Selection,
        watch: str,
        backoff: Backoff,
        absent: str,
    ) -> None:
        """Prepare the list and watch of ``selection``.

        ``watch`` is the namespace by which ``cache`` distinguishes its watches; it is empty if
        there is only one. ``notify`` is called with each change that did not come from this
        process, and ``on_listed`` after each list. ``absent`` is advice that is logged if the API
        server does not serve the kind.
        """
        self.has_listed = False
        """Whether the first list is in the cache."""
        self._client = client
        self._resource = resource
        self._metrics = metrics
        self._cache = cache
        self._notify = notify
        self._on_listed = on_listed
        self._selection = selection
        self._watch_name = watch
        self._absent = absent
        self._backoff = backoff
        self._outdated, self._refreshed = asyncio.Event(), asyncio.Event()
        self._log = get_logger("informer", kind=resource.kind)

    async def refresh(self) -> None:
        """Wait until the cache is at least as new as the API server was at the time of the call."""
        self._refreshed.clear()
        self._outdated.set()
        await self._refreshed.wait()

    async def run(self) -> None:
        """List and watch until cancelled; retry failures with back-off."""
        listed, was_interrupted = False, False
        while True:
            cause = "ended"
            wait = 0.0
            began, before = monotonic(), self._seen
            try:
                # Not after the server's time-out, so that a quiet kind costs no request: servers
                # are stopped before their etcd is restored.
                if listed and was_interrupted and await self._is_restored():
                    listed = False
                was_interrupted = False
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
                # Servers and proxies end every watch after some minutes, which is not a failure.
                # Without a delay, watches that end immediately and without an event would make this
                # a busy loop.
                if monotonic() - began < _SHORT_SECONDS and self._seen == before:
                    wait = self._backoff.next()
            except ResourceExpiredError:
                cause, listed, wait = "gone", False, self._backoff.next()
            except ApiError as error:
                was_interrupted = True
                cause, wait = error_label(error), self._backoff.next(error.retry_after)
                self._log_interruption(error, listed, wait)
            self._metrics.informer_restarts.labels(self._resource.kind, cause).inc()
            # A new leader waits for `refresh`, which therefore ends the back-off.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._outdated.wait()

    @property
    def _seen(self) -> int:
        return self._cache.seen_in(self._watch_name)

    async def _is_restored(self) -> bool:
        """Return whether the API server's etcd has been restored from a backup.

        Its versions start again at an older one then, and a watch that continues at a later version
        delivers nothing until they have reached it.
        """
        page = await self._read_page(limit=1)
        is_restored = int(page.resource_version) < self._seen
        if is_restored:
            self._log.warning(
                "the API server has older versions than before: all objects are listed again"
            )
        return is_restored

    def _log_interruption(self, error: ApiError, listed: bool, wait: float) -> None:
        # Connections break whenever an API server is restarted: a broken watch alone needs no
        # attention.
        level = self._log.info if error.status == 0 and listed else self._log.warning
        details: dict[str, Any] = {"namespace": self._watch_name} if self._watch_name else {}
        if self._absent and error.status == 404:
            details["hint"] = self._absent
        level("watch interrupted", error=str(error), retry_seconds=round(wait, 2), **details)

    async def _list(self) -> None:
        listed = EncodedObjects()
        token, limit = "", _PAGE
        while True:
            try:
                page = await self._read_page(limit=limit, token=token)
            except ResourceExpiredError:
                if not token:
                    raise
                # The remaining pages have expired, as etcd was compacted in the meantime: request
                # the whole list in one response, which cannot expire.
                listed, token, limit = EncodedObjects(), "", 0
                continue
            await self._take_page(page, listed)
            token = page.token
            if not token:
                break
        # Later lists contain few changes. All of them are applied before the event loop runs again,
        # so that none is mixed with this process's own writes.
        for change in self._cache.replace(listed, int(page.resource_version), self._watch_name):
            self._notify(change)
        self._backoff.reset()
        self.has_listed = True
        self._on_listed()

    async def _read_page(self, *, limit: int, token: str = "") -> Page:
        return await self._client.list_page(
            self._resource, self._selection, limit=limit, token=token
        )

    def _cached_part(self, item: JSON) -> JSON:
        # Items of a list have no apiVersion and kind.
        item.setdefault("apiVersion", self._resource.api_version)
        item.setdefault("kind", self._resource.kind)
        return self._cache.project(item)

    async def _take_page(self, page: Page, listed: EncodedObjects) -> None:
        """Add a page to ``listed``, in batches to keep the event loop responsive."""
        for number, item in enumerate(page.items, 1):
            obj = self._cached_part(item)
            # The first list is cached page by page: no controller reads the cache before it is
            # complete.
            change = None if self.has_listed else self._cache.observe(obj)
            if change is not None:
                self._notify(change)
            self._cache.add_listed(listed, obj, int(page.resource_version))
            if number % _BATCH == 0:
                await asyncio.sleep(0)

    async def _watch_until_outdated(self) -> None:
        # `refresh` must be able to end a watch that would otherwise last for minutes.
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
            self._resource, self._selection, resource_version=str(self._seen)
        )
        # Without this, the connection of a cancelled watch stays open until the garbage collector
        # finalizes the generator.
        async with contextlib.aclosing(events) as stream:
            async for event in stream:
                self._take(event)
                self._backoff.reset()

    def _take(self, event: WatchEvent) -> None:
        # Without bookmarks, the version of a quiet kind would expire, and each new watch would have
        # to list again.
        if event.type == "BOOKMARK":
            self._cache.advance(self._watch_name, version_of(event.object))
            return
        obj = self._cache.project(event.object)
        deleted = event.type == "DELETED"
        change = self._cache.observe_deleted(obj) if deleted else self._cache.observe(obj)
        if change is not None:
            self._notify(change)
