"""Watches for infrastructure controllers: which changes enqueue which objects.

Core objects often change in fields that providers ignore, so only changes to their views enqueue
anything; see :mod:`capsmith_runtime.contract.core`.

A change to an object shared by all of a cluster's machines may concern thousands of them.  Machines
that may be waiting for it are enqueued with normal priority, provisioned ones with low priority, so
that new machines of any cluster are reconciled first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.infrastructure.api import WatchedMachines
from capsmith_runtime.infrastructure.caches import BY_WAITING, InfrastructureCaches, is_waiting
from capsmith_runtime.infrastructure.cluster_dependents import DependentKind
from capsmith_runtime.infrastructure.cluster_machines import (
    is_control_plane,
    select_membership_fields,
)
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.requeue import Priority
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.caches import BY_CLUSTER, cluster_name_of
from capsmith_runtime.reconcile.groups import Queues
from capsmith_runtime.reconcile.sessions import ReportedChange
from capsmith_runtime.reconcile.watches import enqueue_object, on_change


class InfrastructureWatches:
    """Enqueues an infrastructure provider's objects when objects that affect them change."""

    def __init__(self, caches: InfrastructureCaches, queues: Queues) -> None:
        self._caches = caches
        self._queues = queues

    def setup(self) -> None:
        """Register all event handlers; call this before the informers start."""
        caches, core = self._caches, self._caches.core
        for informers in (caches.clusters, caches.machines, caches.templates):
            for informer in informers.values():
                self._watch_objects(informer)
        core.machines.add_handler(on_change(core.reader.read_machine, self._enqueue_infra_machine))
        core.clusters.add_handler(self._enqueue_objects_of_cluster)
        for informer in caches.clusters.values():
            view = partial(_machine_relevant_fields, informer.resource.group)
            informer.add_handler(on_change(view, self._enqueue_machines_of_infra_cluster))
        for kind in caches.dependents:
            kind.informer.add_handler(partial(self._enqueue_waiting_infra_cluster, kind))
        if any(
            kind.reconciler.watched_machines is not WatchedMachines.NONE
            for kind in caches.kinds.clusters
        ):
            members = on_change(select_membership_fields, self._enqueue_watching_clusters)
            for informer in caches.machines.values():
                informer.add_handler(members)
        self._set_enqueuers()

    def _set_enqueuers(self) -> None:
        """Set how the users of an identity are enqueued when it changes."""
        enqueuers = self._caches.identity.enqueuers
        for kind in self._caches.clusters:
            enqueuers[kind] = self._enqueue_infra_cluster_and_machines
        for informer in self._caches.identity.recorded_users:
            enqueuers[informer.resource.kind] = self._enqueue_by_priority

    def _watch_objects(self, informer: Informer) -> None:
        queue = self._queues[informer.resource.kind]
        informer.add_handler(enqueue_object(queue), own_writes=False)

    def _enqueue_infra_machine(self, obj: JSON) -> None:
        reference = self._caches.core.reader.read_infrastructure(obj)
        self._enqueue_reference(metadata.namespace(obj), reference)

    def _enqueue_objects_of_cluster(self, change: Delta) -> None:
        """Enqueue a Cluster's infrastructure, and the machines that the change concerns.

        Other tools keep records in the Cluster's annotations and change them often.  After such a
        change, only machines that are waiting are enqueued, as they may need the annotation; the
        others see it at their next reconcile.
        """
        reader = self._caches.core.reader
        old, new = (
            reader.read_cluster(obj) if obj is not None else None
            for obj in (change.old, change.new)
        )
        if old == new:
            return
        namespace = metadata.namespace(change.latest)
        self._enqueue_reference(namespace, reader.read_infrastructure(change.latest))
        # Annotations alone concern only machines that are waiting, all other fields concern all
        # machines.
        concerns_all = (
            old is None
            or new is None
            or replace(old, annotations={}) != replace(new, annotations={})
        )
        at_least = Priority.LOW if concerns_all else Priority.NORMAL
        self._enqueue_machines(namespace, metadata.name(change.latest), at_least)

    def _enqueue_machines(
        self, namespace: str, cluster: str, at_least: Priority = Priority.LOW
    ) -> None:
        """Enqueue a cluster's pools, templates and machines.

        If ``at_least`` is NORMAL, templates and provisioned machines are left out.  Objects are
        found by their cluster name label, which core sets together with the owner reference.
        """
        value = f"{namespace}/{cluster}"
        for kind, informer in self._caches.pools.items():
            self._enqueue(kind, informer.keys_by_index(BY_CLUSTER, value))
        # Only waiting machines may need the annotations; templates do not depend on them.
        if at_least is Priority.LOW:
            for kind, informer in self._caches.templates.items():
                self._enqueue(kind, informer.keys_by_index(BY_CLUSTER, value))
        for kind, informer in self._caches.machines.items():
            self._enqueue(kind, informer.keys_by_index(BY_WAITING, value))
            if at_least is Priority.LOW:
                keys = informer.keys_by_index(BY_CLUSTER, value)
                self._enqueue(kind, keys, Priority.LOW)

    def _enqueue_machines_of_infra_cluster(self, obj: JSON) -> None:
        name = cluster_name_of(obj)
        if name is None:
            return
        self._enqueue_machines(metadata.namespace(obj), name)
        # Control planes of another group use the identity of their cluster's infrastructure.
        for informer in self._caches.identity.recorded_users:
            kind = informer.resource.kind
            if kind not in self._caches.machines and kind not in self._caches.pools:
                value = f"{metadata.namespace(obj)}/{name}"
                self._enqueue(kind, informer.keys_by_index(BY_CLUSTER, value))

    def _enqueue_waiting_infra_cluster(self, kind: DependentKind, change: Delta) -> None:
        """Enqueue an infrastructure cluster in deletion when its last dependent is gone."""
        # No cluster waits less because of an object that is new.
        if change.old is None or (change.new is not None and kind.has_any([change.new])):
            return
        namespace, name = change.key.namespace, kind.cluster_name(change.latest)
        for cluster_kind, informer in self._caches.clusters.items() if name else ():
            for obj in informer.by_index(BY_CLUSTER, f"{namespace}/{name}"):
                if not metadata.is_deleting(obj):
                    continue
                if not kind.has_any(kind.of_cluster(namespace, name or "")):
                    self._queues[cluster_kind].add(key_of(obj))

    def _enqueue_watching_clusters(self, machine: JSON) -> None:
        """Enqueue the infrastructure clusters whose reconcilers list ``machine``."""
        name, selections = cluster_name_of(machine), {WatchedMachines.ALL}
        if is_control_plane(self._caches, machine):
            selections.add(WatchedMachines.CONTROL_PLANE)
        for kind in self._caches.kinds.clusters if name else ():
            if kind.reconciler.watched_machines in selections:
                value = f"{metadata.namespace(machine)}/{name}"
                informer = self._caches.clusters[kind.resource.kind]
                self._enqueue(kind.resource.kind, informer.keys_by_index(BY_CLUSTER, value))

    def _enqueue_infra_cluster_and_machines(self, obj: JSON) -> None:
        """Enqueue an infrastructure cluster, and the machines that use its credentials."""
        self._queues[obj["kind"]].add(key_of(obj))
        self._enqueue_machines_of_infra_cluster(obj)

    def _enqueue_by_priority(self, obj: JSON) -> None:
        # The infrastructure cluster of a machine or pool may be gone.
        self._queues[obj["kind"]].add(key_of(obj), _priority(obj))

    def _enqueue_reference(self, namespace: str, reference: ObjectRef | None) -> None:
        own = (*self._caches.clusters.values(), *self._caches.machines.values())
        for informer in own:
            resource = informer.resource
            if reference and (reference.group, reference.kind) == (resource.group, resource.kind):
                self._queues[resource.kind].add(NamespacedName(namespace, reference.name))

    def enqueue_changed(self, change: ReportedChange) -> None:
        """Enqueue the objects whose infrastructure has changed according to the author's code."""
        for obj in self._caches.held_ids.find_objects(change):
            self._queues[obj["kind"]].add(key_of(obj))

    def _enqueue(
        self,
        kind: str,
        keys: Iterable[NamespacedName],
        priority: Priority = Priority.NORMAL,
    ) -> None:
        # A key that is already waiting keeps the higher priority.
        for key in keys:
            self._queues[kind].add(key, priority)


def _spec(obj: JSON) -> Object:
    return metadata.mapping(obj, "spec")


def _machine_relevant_fields(group: str, obj: JSON) -> tuple[Object, str | None, str | None]:
    """Return the fields of an infrastructure cluster that its machines depend on."""
    # The status is not included: its conditions change often, and thousands of machines may share
    # it.
    return _spec(obj), external_id.stored(obj, group), cluster_name_of(obj)


def _priority(machine: JSON) -> Priority:
    """Return a machine's priority for changes that affect all machines of its cluster."""
    return Priority.NORMAL if is_waiting(machine) else Priority.LOW
