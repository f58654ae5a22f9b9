"""Watches of infrastructure controllers: which change enqueues which objects.

Core objects change often in fields that providers ignore: only changes of their views, see
:mod:`capsmith_runtime.contract.core`, enqueue anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.infrastructure.caches import BY_IDENTITY, InfrastructureCaches
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import BY_CLUSTER, BY_SECRET, cluster_name_of
from capsmith_runtime.reconcile.groups import Queues
from capsmith_runtime.reconcile.watches import enqueue_object, on_change


class InfrastructureWatches:
    """Connect the infrastructure's informers to the work queues."""

    def __init__(self, caches: InfrastructureCaches, queues: Queues) -> None:
        self._caches = caches
        self._queues = queues

    def setup(self) -> None:
        """Register all event handlers.  Call before the informers start."""
        caches, core = self._caches, self._caches.core
        for informers in (caches.clusters, caches.machines, caches.templates):
            for informer in informers.values():
                self._watch_objects(informer)
        core.machines.add_handler(on_change(core.reader.machine, self._enqueue_infra_machine))
        core.clusters.add_handler(on_change(core.reader.cluster, self._enqueue_infra_cluster))
        for informer in caches.clusters.values():
            informer.add_handler(
                on_change(_machine_relevant_fields, self._enqueue_machines_of_infra_cluster)
            )
        if caches.identities and caches.secrets and caches.namespaces:
            self._watch_objects(caches.identities)
            caches.identities.add_handler(on_change(_spec, self._enqueue_users_of_identity))
            caches.secrets.add_handler(on_change(_data, self._enqueue_users_of_secret))
            caches.namespaces.add_handler(
                on_change(metadata.labels, self._enqueue_clusters_in_namespace)
            )

    def _watch_objects(self, informer: Informer) -> None:
        queue = self._queues[informer.resource.kind]
        informer.add_handler(enqueue_object(queue), own_writes=False)

    def _enqueue_infra_machine(self, obj: JSON) -> None:
        self._enqueue_reference(
            metadata.namespace(obj), self._caches.core.reader.machine(obj).infrastructure
        )

    def _enqueue_infra_cluster(self, obj: JSON) -> None:
        namespace = metadata.namespace(obj)
        self._enqueue_reference(namespace, self._caches.core.reader.cluster(obj).infrastructure)
        self._enqueue_machines(namespace, metadata.name(obj))

    def _enqueue_machines(self, namespace: str, cluster: str) -> None:
        value = f"{namespace}/{cluster}"
        for machine in self._caches.core.machines.by_index(BY_CLUSTER, value):
            self._enqueue_infra_machine(machine)
        # Pools, and machines whose Machine was deleted, are found by their label.
        for kind, informer in (self._caches.machines | self._caches.pools).items():
            self._enqueue(kind, informer.by_index(BY_CLUSTER, value))

    def _enqueue_machines_of_infra_cluster(self, obj: JSON) -> None:
        name = cluster_name_of(obj)
        if name is not None:
            self._enqueue_machines(metadata.namespace(obj), name)

    def _enqueue_users_of_identity(self, obj: JSON) -> None:
        for kind, informer in self._caches.clusters.items():
            users = informer.by_index(BY_IDENTITY, metadata.name(obj))
            self._enqueue(kind, users)
            for user in users:
                self._enqueue_machines_of_infra_cluster(user)

    def _enqueue_users_of_secret(self, obj: JSON) -> None:
        identities = self._caches.identities
        if identities is None:
            return
        users = identities.by_index(BY_SECRET, metadata.name(obj))
        self._enqueue(identities.resource.kind, users)
        for identity in users:
            self._enqueue_users_of_identity(identity)

    def _enqueue_clusters_in_namespace(self, obj: JSON) -> None:
        for kind, informer in self._caches.clusters.items():
            clusters = [o for o in informer.items() if metadata.namespace(o) == metadata.name(obj)]
            self._enqueue(kind, clusters)
            for user in clusters:
                self._enqueue_machines_of_infra_cluster(user)

    def _enqueue_reference(self, namespace: str, reference: ObjectRef | None) -> None:
        own = (*self._caches.clusters.values(), *self._caches.machines.values())
        for informer in own:
            resource = informer.resource
            if reference and (reference.group, reference.kind) == (resource.group, resource.kind):
                self._queues[resource.kind].add(NamespacedName(namespace, reference.name))

    def _enqueue(self, kind: str, objects: Iterable[JSON]) -> None:
        for obj in objects:
            self._queues[kind].add(key_of(obj))


def _spec(obj: JSON) -> Object:
    return metadata.mapping(obj, "spec")


def _data(obj: JSON) -> Object:
    return metadata.mapping(obj, "data")


def _machine_relevant_fields(obj: JSON) -> tuple[Object, Object, str | None]:
    return _spec(obj), metadata.annotations(obj), cluster_name_of(obj)
