"""The controllers of all kinds that implement Resource, and their watches.

A change to a resource enqueues its owners, like Owns in controller-runtime.  A Cluster that is
paused, resumed, created or deleted enqueues its resources, as does a change to its infrastructure
cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, is_deleted_for_move
from capsmith_runtime.infrastructure.api import InfraClusterView, create_owner_reference
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.prerequisites import find_infra_cluster
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.caches import Caches, cluster_name_of
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.status_reporter import StatusReporter
from capsmith_runtime.reconcile.watches import enqueue_object, on_change
from capsmith_runtime.resource.api import Owner, ResourceDeleteScope, ResourceScope, ResourceState
from capsmith_runtime.resource.caches import ResourceCaches, ResourceKind


class ResourceController:
    """Reconciles one kind of resource, with or without a Cluster."""

    def __init__(
        self, kind: ResourceKind, resources: ResourceCaches, context: InfrastructureContext
    ) -> None:
        self.kind = kind
        self._resources = resources
        self._caches = context.caches
        self._credentials = context.credentials
        self._reporter = StatusReporter(kind, context)
        self._author = AuthorStep(kind, context, self._reporter, has_account=True)
        informer = resources.informers[kind.resource.kind]
        self._runner = ReconcileRunner(
            kind,
            informer,
            context,
            self._reporter,
            new_patcher=partial(Patcher, context.client, informer, context.writer),
            forget=self._forget,
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile a resource.

        Failures are reported in its conditions.
        """
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        if is_deleted_for_move(patcher.obj):
            return Result()
        name = self._resources.cluster_name(patcher.obj)
        if metadata.is_deleting(patcher.obj):
            return await self._reconcile_delete(key, patcher, name)
        cluster = self._caches.core.cluster(key.namespace, name)
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        if name is not None and cluster is None:
            # The Cluster might be paused: ``clusterctl move`` and ``kubectl apply`` create it
            # together with the resource, and an event for the Cluster enqueues this object.
            waiting = Waiting(
                constants.REASON_CLUSTER_NOT_FOUND, f"Cluster {name} does not exist", None
            )
            return await self._reporter.report_wait(patcher, waiting)
        unknown = await self._resources.find_uncached_owner(patcher.obj)
        if unknown is not None:
            return await self._reporter.report_wait(patcher, unknown)
        return await self._reconcile_normal(patcher, cluster)

    async def _reconcile_normal(self, patcher: Patcher, cluster: Cluster | None) -> Result:
        # Before the finalizer, which is written together with the record of the identity.
        await self._adopt_identity(patcher, cluster)
        record = self._caches.identity.build_own_record(patcher.obj)
        await patcher.add_finalizer(self.kind, further=record)
        taken = self._caches.held_ids.find_taken(patcher.obj)
        if taken is not None:
            return await self._reporter.report_wait(patcher, taken)
        spec = await self._author.decode_spec(patcher)
        if spec is None:
            return Result()
        credentials = await self._credentials.of_object(patcher.obj)
        if isinstance(credentials, Waiting):
            return await self._reporter.report_wait(patcher, credentials)
        scope = ResourceScope(
            **self._author.scope_fields(patcher.obj),
            _reference=create_owner_reference(self.kind.resource, patcher.obj),
            spec=spec,
            cluster=cluster,
            owners=_owners(patcher.obj),
            credentials=credentials,
            infra_cluster=self._infra_cluster(patcher.obj, cluster),
        )
        hook = self._author.reconciler.reconcile_normal
        state = await self._author.call(patcher, hook, scope, ResourceState)
        if isinstance(state, Waiting):
            return await self._reporter.report_wait(patcher, state)
        status = self._reporter.author_status(patcher, state.status)
        return await self._reporter.report_state(patcher, status, state)

    async def _adopt_identity(self, patcher: Patcher, cluster: Cluster | None) -> None:
        """Record the identity of the owning machine or the cluster, unless the object names one.

        When a cluster is deleted, its infrastructure cluster may be gone before the resource. The
        resource still needs the credentials at that time, so the identity must stay until the
        resource is gone.
        """
        spec = metadata.mapping(patcher.obj, "spec")
        # An identity that the user has chosen is kept, even if it differs from the cluster's.
        if not self._caches.kinds.identities or cluster is None or "identityRef" in spec:
            return
        reference = self._resources.find_identity(patcher.obj, cluster)
        if reference:
            await patcher.write_spec({**spec, "identityRef": dict(reference)})

    async def _reconcile_delete(
        self, key: NamespacedName, patcher: Patcher, name: str | None
    ) -> Result:
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        # Read live, because a pause that the cache does not contain yet must stop the deletion
        # (SM-01).
        cluster = await self._caches.core.live_cluster(key.namespace, name)
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        taken = self._caches.held_ids.find_taken(patcher.obj)
        if taken is not None:
            return await self._reporter.report_wait(patcher, taken)
        scope = ResourceDeleteScope(
            **self._author.delete_scope_fields(patcher.obj),
            _credentials=await self._credentials.of_object(patcher.obj),
            cluster=cluster,
            owners=_owners(patcher.obj),
            infra_cluster=self._infra_cluster(patcher.obj, cluster),
        )
        hook = self._author.reconciler.reconcile_delete
        result = await self._author.call(patcher, hook, scope, Deleted)
        if isinstance(result, Waiting):
            return await self._reporter.report_wait(patcher, result)
        await self._reporter.remove_finalizer(patcher)
        return self._forget(key)

    def _forget(self, key: NamespacedName) -> Result:
        self._reporter.forget(key)
        self._author.forget(key)
        return Result()

    def _infra_cluster(self, obj: JSON, cluster: Cluster | None) -> InfraClusterView | None:
        name = self._resources.cluster_name(obj)
        if name is None:
            return None
        namespace = metadata.namespace(obj)
        return find_infra_cluster(self._caches, namespace, cluster, name)


def _owners(obj: JSON) -> tuple[Owner, ...]:
    return tuple(
        Owner(
            group=metadata.text(reference, "apiVersion").rpartition("/")[0],
            kind=metadata.text(reference, "kind"),
            name=metadata.text(reference, "name"),
            uid=metadata.text(reference, "uid"),
            controller=reference.get("controller") is True,
        )
        for reference in metadata.items(obj, "metadata", "ownerReferences")
    )


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
        """Return the informers for all resource kinds."""
        return tuple(self._caches.informers.values())

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Register the kinds that other groups serve, so that their objects can own resources."""
        self._caches.add_owners(informer for group in groups for informer in group.informers)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield each kind's name and reconcile function."""
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
