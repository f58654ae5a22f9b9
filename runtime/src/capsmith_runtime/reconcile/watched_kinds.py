"""Other kinds whose changes enqueue the provider's objects, as declared in provider.yaml.

Only their metadata are watched.  Any change to an object gives it a new resource version, so no
content, such as that of Secrets, is kept in memory.  The manager neither waits for these kinds nor
stops if one is not served: its CRD may be installed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType, Selection
from capsmith_runtime.kube.clock import Backoff
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.requeue import Priority
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.caches import WatchScope
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Runnable

RETRY_SECONDS: Final = 60.0
"""Maximum seconds between two attempts to watch a kind that was not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A kind whose changes enqueue provider objects, by default the changed object's owners."""

    kind: str
    """The provider's kind whose objects are enqueued."""
    resource: ResourceType
    path: tuple[str, ...] = ()
    """Path of the field in the provider's kind that names the changed object.

    If the path leads through a list, each of its items counts.
    """
    label: str = ""
    """Label on the changed object that holds the name of the object to enqueue."""


class WatchedKinds(ControllerGroup):
    """Informers for the kinds in ``watches``; ``own`` are the provider kinds' informers."""

    def __init__(
        self,
        watches: Sequence[Watch],
        client: KubeClient,
        metrics: Metrics,
        *,
        scope: WatchScope,
        own: Iterable[Informer],
    ) -> None:
        by_kind = {informer.resource.kind: informer for informer in own}
        self._watches = {watch: by_kind[watch.kind] for watch in watches}
        self._informers = {
            resource: Informer(
                client,
                resource,
                metrics,
                selection=(
                    scope.select(metadata_only=True)
                    if resource.namespaced
                    else Selection(metadata_only=True)
                ),
                # A kind whose CRD is missing would otherwise be requested again with an ever longer
                # delay.
                backoff=Backoff(base=0.5, limit=RETRY_SECONDS),
            )
            for resource in dict.fromkeys(watch.resource for watch in watches)
        }
        for watch, informer in self._watches.items():
            if watch.path:
                informer.add_index(_index(watch), partial(_named_objects, watch.path))

    @property
    def runnables(self) -> tuple[Runnable, ...]:
        """Return the informers as tasks, so that starting the manager does not wait for them."""
        return tuple(informer.run for informer in self._informers.values())

    def setup_watches(self, queues: Queues) -> None:
        """Register handlers that enqueue the provider's objects affected by a change."""
        for watch, own in self._watches.items():
            watched = self._informers[watch.resource]
            watched.add_handler(partial(_enqueue, watch, own, watched, queues))


def _enqueue(watch: Watch, own: Informer, watched: Informer, queues: Queues, change: Delta) -> None:
    # The first list may contain many objects; it is not a change.
    priority = Priority.NORMAL if watched.synced.is_set() else Priority.LOW
    states = [state for state in (change.old, change.new) if state is not None]
    # Both states, because the change may have been from one of the provider's objects to another.
    for key in dict.fromkeys(key for state in states for key in _concerned(watch, own, state)):
        # References and labels may name objects that do not exist or are not in scope.
        if own.get(key) is not None:
            queues[watch.kind].add(key, priority)


def _concerned(watch: Watch, own: Informer, changed: JSON) -> Iterator[NamespacedName]:
    """Yield the keys of the provider's objects affected by a change."""
    namespace = metadata.namespace(changed) if own.resource.namespaced else ""
    if watch.path:
        name = f"{metadata.namespace(changed)}/{metadata.name(changed)}"
        for obj in own.by_index(_index(watch), name):
            yield NamespacedName(metadata.namespace(obj), metadata.name(obj))
    elif watch.label:
        name = metadata.labels(changed).get(watch.label, "")
        yield NamespacedName(namespace, name)
    else:
        for reference in metadata.items(changed, "metadata", "ownerReferences"):
            group, slash, _ = metadata.text(reference, "apiVersion").partition("/")
            if slash and (group, reference.get("kind")) == (own.resource.group, watch.kind):
                yield NamespacedName(namespace, metadata.text(reference, "name"))


def _index(watch: Watch) -> str:
    return ".".join(watch.path)


def _named_objects(path: tuple[str, ...], obj: JSON) -> Iterator[str]:
    """Yield two index keys for each object that ``obj`` names: with its namespace and without.

    The key without a namespace finds cluster-scoped objects.
    """
    namespaces = dict.fromkeys((metadata.namespace(obj), ""))
    for name in dict.fromkeys(_texts(obj, path)):
        yield from (f"{namespace}/{name}" for namespace in namespaces)


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, path)
    elif path:
        if isinstance(value, Mapping):
            yield from _texts(value.get(path[0]), path[1:])
    elif isinstance(value, str) and value:
        yield value
