"""A bootstrap provider's controllers, with their caches and watches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from capsmith_runtime.bootstrap.controller import BootstrapConfigController, BootstrapConfigKind
from capsmith_runtime.bootstrap.owners import ConfigOwnerFinder, owner_key, owner_keys
from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.bootstrap import BOOTSTRAP_STATUS_WRITERS
from capsmith_runtime.contract.constants import MACHINE_KIND, MACHINE_POOL_KIND
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.machine_pool import read_machine_pool
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.informer import Handler, Informer
from capsmith_runtime.kube.requeue import Priority
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.reconcile.caches import BY_CLUSTER, BY_OWNER, Caches, cluster_of, spec_cluster
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile
from capsmith_runtime.reconcile.kinds import core_type
from capsmith_runtime.reconcile.watches import on_change

_WITHOUT_DATA = "cluster, without data"
"""Index of configurations without data, by Cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapControllers:
    """Creates the controllers for a provider's BootstrapConfig kinds."""

    kinds: tuple[BootstrapConfigKind, ...]

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the controllers for one manager."""
        return BootstrapGroup(self.kinds, caches, context)


class BootstrapGroup(ControllerGroup):
    """The controllers for all of a provider's BootstrapConfig kinds."""

    def __init__(
        self,
        kinds: tuple[BootstrapConfigKind, ...],
        caches: Caches,
        context: ControllerContext,
    ) -> None:
        self._kinds = kinds
        self._writer = BOOTSTRAP_STATUS_WRITERS[context.contract]
        self._caches = caches
        self._context = context
        indexes = {BY_OWNER: owner_keys, _WITHOUT_DATA: self._index_without_data}
        self._configs = {
            kind.resource.kind: caches.informer(kind.resource, caches.scope.select_own(), indexes)
            for kind in kinds
        }
        pools = core_type(caches.reader.version, MACHINE_POOL_KIND, "machinepools")
        self._pools = caches.informer(pools, caches.scope.select(), {BY_CLUSTER: spec_cluster})

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the informers for configurations and MachinePools."""
        return (*self._configs.values(), self._pools)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield each kind's name and reconcile function."""
        owners = ConfigOwnerFinder(self._caches, self._pools)
        for kind in self._kinds:
            name = kind.resource.kind
            controller = BootstrapConfigController(
                kind, self._configs[name], self._caches, self._context, owners, self._writer
            )
            yield name, controller.reconcile

    def setup_watches(self, queues: Queues) -> None:
        """Register the handlers for configurations, their owners and Clusters."""
        caches = self._caches

        def requeue(configs: Iterable[JSON]) -> None:
            for config in configs:
                queues[config["kind"]].add(key_of(config))

        def requeue_all(cluster: JSON) -> None:
            for config in self._of_cluster(*key_of(cluster)):
                # After a change of the Cluster, configurations without data come first: machines
                # wait for them.
                done = self._writer.is_created(config)
                priority = Priority.LOW if done else Priority.NORMAL
                queues[config["kind"]].add(key_of(config), priority)

        def requeue_owned(kind: str) -> Callable[[JSON], None]:
            return lambda owner: requeue(self._owned_by(kind, owner))

        for name, informer in self._configs.items():
            informer.add_handler(_enqueue(queues[name]), own_writes=False)
        caches.machines.add_handler(
            on_change(caches.reader.read_machine, requeue_owned(MACHINE_KIND))
        )
        caches.machines.add_handler(
            _on_delete(lambda machine: requeue(self._waiting_for_lock(machine)))
        )
        self._pools.add_handler(on_change(read_machine_pool, requeue_owned(MACHINE_POOL_KIND)))
        # Tools often change a Cluster's annotations, which concern only configurations that are
        # still waiting.
        caches.clusters.add_handler(
            on_change(
                caches.reader.read_cluster,
                lambda obj: requeue(self._without_data(str(key_of(obj)))),
            )
        )
        caches.clusters.add_handler(on_change(self._shared_view, requeue_all))

    def _shared_view(self, obj: JSON) -> Cluster:
        return replace(self._caches.reader.read_cluster(obj), annotations={})

    def _owned_by(self, kind: str, owner: JSON) -> Iterator[JSON]:
        value = owner_key(kind, metadata.namespace(owner), metadata.name(owner))
        for informer in self._configs.values():
            yield from informer.by_index(BY_OWNER, value)

    def _of_cluster(self, namespace: str, name: str) -> Iterator[JSON]:
        value = f"{namespace}/{name}"
        for machine in self._caches.machines.by_index(BY_CLUSTER, value):
            yield from self._owned_by(MACHINE_KIND, machine)
        for pool in self._pools.by_index(BY_CLUSTER, value):
            yield from self._owned_by(MACHINE_POOL_KIND, pool)

    def _index_without_data(self, config: JSON) -> Iterable[str]:
        # Configurations leave this index when they have data, so it stays small in large clusters.
        return () if self._writer.is_created(config) else cluster_of(config)

    def _waiting_for_lock(self, machine: JSON) -> Iterator[JSON]:
        """Yield configurations that may wait for the lock that a deleted Machine held (BC-12).

        Only members of a control plane that is not initialized take the lock or wait for it.
        """
        deleted = self._caches.reader.read_machine(machine)
        cluster = self._caches.cluster(deleted.namespace, deleted.cluster_name)
        if not deleted.is_control_plane or cluster is None or cluster.control_plane_initialized:
            return
        for config in self._without_data(f"{cluster.namespace}/{cluster.name}"):
            owner = self._caches.machine_of(config)
            if owner is not None and owner.is_control_plane:
                yield config

    def _without_data(self, cluster: str) -> Iterator[JSON]:
        for informer in self._configs.values():
            yield from informer.by_index(_WITHOUT_DATA, cluster)


def _enqueue(queue: WorkQueue[NamespacedName]) -> Handler:
    """Create a handler that queues the object itself."""
    return lambda delta: queue.add(delta.key)


def _on_delete(callback: Callable[[JSON], None]) -> Handler:
    """Create a handler that calls ``callback`` only with deleted objects."""

    def handle(delta: Delta) -> None:
        if delta.new is None:
            callback(delta.latest)

    return handle
