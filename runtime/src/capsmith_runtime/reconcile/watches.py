"""Event handlers that enqueue objects after changes.

Objects often change in fields that do not matter to a controller.  A view selects the fields that
matter; only changes to the view are passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.constants import READY_CONDITION
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.informer import Handler
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.kube.workqueue import WorkQueue


def on_change(view: Callable[[JSON], Any], handler: Callable[[JSON], None]) -> Handler:
    """Return a handler that calls ``handler`` if an object is new or gone, or its view changed."""

    def handle(change: Delta) -> None:
        if change.old is None or change.new is None or view(change.old) != view(change.new):
            handler(change.latest)

    return handle


def enqueue_object(queue: WorkQueue[NamespacedName]) -> Handler:
    """Return a handler that enqueues the changed object; at startup, unready objects come first."""

    def handle(change: Delta) -> None:
        queue.add(change.key, is_pending=not queue.has_started and _is_pending(change.latest))

    return handle


def enqueue_owners(queues: Mapping[str, WorkQueue[NamespacedName]]) -> Handler:
    """Return a handler that enqueues the changed object's owners, if their kinds have a queue."""

    def handle(change: Delta) -> None:
        namespace = metadata.namespace(change.latest)
        for reference in metadata.items(change.latest, "metadata", "ownerReferences"):
            queue = queues.get(metadata.text(reference, "kind"))
            if queue is not None:
                queue.add(NamespacedName(namespace, metadata.text(reference, "name")))

    return handle


def _is_pending(obj: JSON) -> bool:
    """Return whether there is certainly work to do for an object."""
    ready = conditions.find(metadata.items(obj, "status", "conditions"), READY_CONDITION)
    return metadata.is_deleting(obj) or ready is None or metadata.text(ready, "status") != "True"
