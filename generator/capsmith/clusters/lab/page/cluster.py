"""A watched management cluster, shared by the threads that watch it and the page's server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from capsmith.clusters.lab.page.model.store import ObjectStore

Listener = Callable[[], None]


class WatchedCluster:
    """An object store with a lock, and with listeners that are called after changes.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._store = ObjectStore()
        self._lock = threading.RLock()
        self._listeners: set[Listener] = set()

    @contextmanager
    def read(self) -> Iterator[ObjectStore]:
        """Return a context manager that provides the store and blocks changes while it is open."""
        with self._lock:
            yield self._store

    @contextmanager
    def change(self) -> Iterator[ObjectStore]:
        """Return a context manager that provides the store for making changes.

        On exit, it calls the listeners if anything has changed.
        """
        with self._lock:
            before = self._store.revision
            yield self._store
            is_changed = self._store.revision != before
            listeners = list(self._listeners) if is_changed else []
        for listener in listeners:
            listener()

    @contextmanager
    def listen(self, listener: Listener) -> Iterator[None]:
        """Return a context manager that calls ``listener`` after each change while it is open.

        The listener is called on the thread that made the change, and must not block.
        """
        with self._lock:
            self._listeners.add(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.discard(listener)
