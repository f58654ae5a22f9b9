"""A manager's managed control plane controllers, and the events that trigger them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capsmith_runtime.contract import metadata
from capsmith_runtime.controlplane.managed.controller import (
    ManagedControlPlaneController,
    ManagedControlPlaneKind,
)
from capsmith_runtime.controlplane.secrets.store import SecretStore
from capsmith_runtime.controlplane.workers import ClusterWorkers
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.informer import Handler, Informer
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.reconcile.caches import BY_CLUSTER, Caches, cluster_of
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile
from capsmith_runtime.reconcile.held_ids import HeldIds
from capsmith_runtime.reconcile.watches import on_change


class ManagedControlPlaneControllers:
    """Creates the controllers for a provider's managed ControlPlane kinds."""

    def __init__(self, kinds: Sequence[ManagedControlPlaneKind]) -> None:
        self.kinds = kinds

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the controllers for one manager."""
        return ManagedControlPlaneGroup(self.kinds, caches, context)


class ManagedControlPlaneGroup(ControllerGroup):
    """An informer and a controller for each kind, and the Secrets of their clusters."""

    def __init__(
        self, kinds: Sequence[ManagedControlPlaneKind], caches: Caches, context: ControllerContext
    ) -> None:
        self._caches = caches
        self._store = SecretStore(caches)
        self._workers = ClusterWorkers(caches)
        self._held_ids = HeldIds()
        self._informers = {
            kind.resource.kind: caches.informer(
                kind.resource, caches.scope.select_own(), {BY_CLUSTER: cluster_of}
            )
            for kind in kinds
        }
        for informer in self._informers.values():
            self._held_ids.index(informer, has_provider_ids=False)
            self._store.add_owners(informer)
        self._controllers = {
            kind.resource.kind: ManagedControlPlaneController(
                kind,
                self._informers[kind.resource.kind],
                caches,
                context,
                self._store,
                self._workers,
                self._held_ids,
            )
            for kind in kinds
        }

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the informers for control planes, cluster Secrets and MachinePools."""
        return (*self._informers.values(), self._store.informer, self._workers.machine_pools)

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Connect the kinds that use identities to the group that serves credentials."""
        for name, controller in self._controllers.items():
            controller.credentials.connect(groups, self._informers[name], has_default=True)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield each kind's name and reconcile function."""
        for name, controller in self._controllers.items():
            yield name, controller.reconcile

    def setup_watches(self, queues: Queues) -> None:
        """Watch control planes, their Clusters and their kubeconfigs."""

        def enqueue(cluster: str) -> None:
            for name, informer in self._informers.items():
                for obj in informer.by_index(BY_CLUSTER, cluster):
                    queues[name].add(key_of(obj))

        def control_plane_deleted(change: Delta) -> None:
            if change.new is None:
                # Other control planes of its Cluster wait for its kubeconfig Secret.
                for cluster in cluster_of(change.latest):
                    enqueue(cluster)

        def cluster_changed(obj: JSON) -> None:
            enqueue(f"{metadata.namespace(obj)}/{metadata.name(obj)}")

        for name, informer in self._informers.items():
            informer.add_handler(_enqueue(queues[name]), own_writes=False)
            informer.add_handler(control_plane_deleted)
        self._caches.clusters.add_handler(
            on_change(self._caches.reader.read_cluster, cluster_changed)
        )
        self._store.set_handler(lambda cluster: enqueue(str(cluster)))
        # The deletion of the last worker lets the deletion of the control plane go on.
        self._workers.set_handler(enqueue)


def _enqueue(queue: WorkQueue[NamespacedName]) -> Handler:
    return lambda change: queue.add(change.key)
