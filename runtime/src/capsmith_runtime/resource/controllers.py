"""The controllers of all kinds that implement Resource, and their watches.

A change to a resource enqueues its owners, like Owns in controller-runtime.  A Cluster that is
paused, resumed, created or deleted enqueues its resources, as does a change to its infrastructure
cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.kube.client import JSON, key_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.caches import Caches, cluster_name_of
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile
from capsmith_runtime.reconcile.watches import enqueue_object, on_change
from capsmith_runtime.resource.caches import ResourceCaches, ResourceKind
from capsmith_runtime.resource.controller import ResourceController


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceControllers:
    """Factory for the resource controllers of an infrastructure provider."""

    kinds: tuple[ResourceKind, ...]

    def __call__(self, context: InfrastructureContext) -> ControllerGroup:
        """Create the controllers for one manager."""
        return ResourceGroup(self.kinds, context)


@dataclass(frozen=True, slots=True)
class StandaloneResourceControllers:
    """Factory for the resource controllers of a provider without infrastructure.

    Such a provider has no identities, so these resources have no credentials.
    """

    kinds: tuple[ResourceKind, ...]

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the controllers for one manager."""
        resources = ResourceControllers(kinds=self.kinds)
        return InfrastructureControllers(additional=(resources,))(caches, context)


class ResourceGroup(ControllerGroup):
    """A controller for each kind; they share caches to find owners of other kinds."""

    def __init__(self, kinds: Sequence[ResourceKind], context: InfrastructureContext) -> None:
        self._kinds = kinds
        self._context = context
        self._caches = ResourceCaches(kinds, context.caches)
        self._queues: Queues = {}

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the informers of all resource kinds."""
        return tuple(self._caches.informers.values())

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Connect the caches to the kinds that other groups serve, so that owners are found."""
        self._caches.add_owners(informer for group in groups for informer in group.informers)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield the name and the reconcile function of each kind."""
        for kind in self._kinds:
            controller = ResourceController(kind, self._caches, self._context)
            yield kind.resource.kind, controller.reconcile

    def setup_watches(self, queues: Queues) -> None:
        """Watch Clusters and resources; changes to a resource also enqueue its owners."""
        self._queues = queues
        for kind, informer in self._caches.informers.items():
            informer.add_handler(enqueue_object(queues[kind]), own_writes=False)
            informer.add_handler(self._enqueue_owners)
        for informer in self._context.caches.clusters.values():
            informer.add_handler(on_change(_infra_cluster_view, self._enqueue_of_infra_cluster))
        core = self._context.caches.core
        core.clusters.add_handler(on_change(_cluster_view, self._enqueue_of_cluster))

    def _enqueue_owners(self, change: Delta) -> None:
        """Enqueue a resource's current and former owners."""
        if change.old and change.new and _owner_view(change.old) == _owner_view(change.new):
            return
        for obj in (change.old, change.new):
            for informer, key in self._caches.owner_keys(obj) if obj is not None else ():
                queue = self._queues.get(informer.resource.kind)
                if queue is not None:
                    queue.add(key)

    def _enqueue_of_cluster(self, obj: JSON) -> None:
        self._enqueue_resources(metadata.namespace(obj), metadata.name(obj))

    def _enqueue_of_infra_cluster(self, obj: JSON) -> None:
        name = cluster_name_of(obj)
        if name is not None:
            self._enqueue_resources(metadata.namespace(obj), name)

    def _enqueue_resources(self, namespace: str, cluster: str) -> None:
        for informer, resource in self._caches.of_cluster(namespace, cluster):
            self._queues[informer.resource.kind].add(key_of(resource))


def _owner_view(obj: JSON) -> Any:
    """Return the fields that owners may read, without the manager's own records and versions."""
    names = ("labels", "ownerReferences", "deletionTimestamp")
    kept = [metadata.lookup(obj, "metadata", name) for name in names]
    return kept, obj.get("spec"), obj.get("status")


def _infra_cluster_view(obj: JSON) -> Any:
    """Return the fields of an infrastructure cluster that its resources may read."""
    status = metadata.mapping(obj, "status")
    return obj.get("spec"), {key: each for key, each in status.items() if key != "conditions"}


def _cluster_view(obj: JSON) -> tuple[bool, bool]:
    return metadata.lookup(obj, "spec", "paused") is True, metadata.is_deleting(obj)
