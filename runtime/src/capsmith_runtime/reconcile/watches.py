"""Event handlers that enqueue objects after changes.

Objects change often in fields that do not matter to a controller.  A view selects the fields that
matter; only its changes are passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.informer import Handler
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.kube.workqueue import WorkQueue


def on_change(view: Callable[[JSON], Any], handler: Callable[[JSON], None]) -> Handler:
    """Call ``handler`` with an object when it is added or deleted, or when its view changes."""

    def handle(change: Delta) -> None:
        if change.old is None or change.new is None or view(change.old) != view(change.new):
            handler(change.latest)

    return handle


def enqueue_object(queue: WorkQueue[NamespacedName]) -> Handler:
    """Enqueue the changed object itself."""
    return lambda change: queue.add(change.key)


def enqueue_owners(queues: Mapping[str, WorkQueue[NamespacedName]]) -> Handler:
    """Enqueue the owners of the changed object whose kinds have a queue."""

    def handle(change: Delta) -> None:
        namespace = metadata.namespace(change.latest)
        for reference in metadata.items(change.latest, "metadata", "ownerReferences"):
            queue = queues.get(metadata.text(reference, "kind"))
            if queue is not None:
                queue.add(NamespacedName(namespace, metadata.text(reference, "name")))

    return handle
