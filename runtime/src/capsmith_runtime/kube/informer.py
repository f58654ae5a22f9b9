"""Informers, each of which keeps one kind's cache up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from capsmith_runtime.kube.client import (
    EVERYTHING,
    JSON,
    KubeClient,
    NamespacedName,
    ResourceType,
    Selection,
)
from capsmith_runtime.kube.clock import Backoff
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.reflector import Reflector
from capsmith_runtime.kube.store import Cache, Delta, IndexFunction, Projection, keep_metadata

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
        selection: Selection | Sequence[Selection] = EVERYTHING,
        projection: Projection | None = None,
        indexes: Mapping[str, IndexFunction] = {},
        backoff: Backoff | None = None,
        absent: str = "",
    ) -> None:
        """Initialise an empty cache.

        Several selections must have different namespaces; they are listed and watched separately.
        ``absent`` is advice that is logged if the API server does not serve the kind. If the
        selection is ``metadata_only``, responses to writes are reduced to their metadata as well.
        """
        self.resource = resource
        self.synced = asyncio.Event()
        """Event that is set once the first list is in the cache, and stays set."""
        selections = (selection,) if isinstance(selection, Selection) else tuple(selection)
        if selections[0].metadata_only and projection is None:
            projection = keep_metadata
        # A single watch delivers all objects, whatever their namespaces.
        watches = [each.namespace for each in selections] if len(selections) > 1 else [""]
        self._cache = Cache(projection, indexes, watches)
        self._handlers: list[tuple[Handler, bool]] = []
        delays = backoff or Backoff(base=0.5, limit=15.0)
        self._reflectors = [
            Reflector(
                client,
                resource,
                metrics,
                self._cache,
                self._notify,
                self._on_listed,
                selection=replace(each, managed_fields=False),
                watch=watch,
                backoff=Backoff(delays.base, delays.limit),
                absent=absent,
            )
            for each, watch in zip(selections, watches, strict=True)
        ]
        metrics.informer_objects.labels(resource.kind).set_function(self._cache.__len__)
        self._log = get_logger("informer", kind=resource.kind)

    def add_handler(self, handler: Handler, *, own_writes: bool = True) -> None:
        """Call `handler` on the event loop for each change; the handler must not block.

        If `own_writes` is False, the handler is not called for changes from `update_from_write`.
        Use this for handlers that queue the changed object, because its reconcile already knows its
        own writes.
        """
        self._handlers.append((handler, own_writes))

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Add an index.

        Call this before the informer runs, as existing objects are not indexed.
        """
        self._cache.add_index(name, function)

    @property
    def seen(self) -> int:
        """Return the latest resource version for which the cache is complete."""
        return self._cache.seen

    def get(self, key: NamespacedName) -> JSON | None:
        """Return the cached object, or None if it is not cached.

        The object is shared: copy it before you change anything.
        """
        return self._cache.get(key)

    def items(self) -> Sequence[JSON]:
        """Return all cached objects, in no particular order.

        The objects are shared: copy them before you change anything.
        """
        return self._cache.items()

    def by_index(self, index: str, value: str) -> Sequence[JSON]:
        """Return the cached objects for which the index function `index` yielded `value`.

        Each is decoded when it is read; use `keys_by_index` if the keys suffice.
        """
        return self._cache.by_index(index, value)

    def keys_by_index(self, index: str, value: str) -> list[NamespacedName]:
        """Return the keys of the objects that `by_index` returns."""
        return self._cache.keys_by_index(index, value)

    def keys_in(self, namespace: str) -> list[NamespacedName]:
        """Return the keys of all cached objects in a namespace, without decoding them."""
        return self._cache.keys_in(namespace)

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

        Each watch is replaced with a new list, which is expensive: only a new leader does this,
        once.
        """
        await asyncio.gather(*(reflector.refresh() for reflector in self._reflectors))

    async def run(self) -> None:
        """List and watch until cancelled; retry failures with back-off."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())

    def _on_listed(self) -> None:
        if all(reflector.has_listed for reflector in self._reflectors):
            self.synced.set()

    def _notify(self, change: Delta, own: bool = False) -> None:
        for handler, own_writes in self._handlers:
            if own and not own_writes:
                continue
            try:
                handler(change)
            except Exception as error:
                # A failing handler must not stop the informer for all others.
                self._log.error("handler failed", error=repr(error), exc_info=error)
