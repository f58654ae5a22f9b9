"""Controller of infrastructure clusters (IC-19, IC-20)."""

from __future__ import annotations

from functools import partial

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.contract import metadata, records
from capsmith_runtime.contract.core import (
    Cluster,
    is_deleted_for_move,
    is_externally_managed,
    read_endpoint,
)
from capsmith_runtime.contract.status_writer import ClusterFacts, add_endpoint
from capsmith_runtime.infrastructure.api import (
    InfraClusterDeleteScope,
    InfraClusterScope,
    InfraClusterState,
    create_owner_reference,
)
from capsmith_runtime.infrastructure.cluster_dependents import ClusterDependents
from capsmith_runtime.infrastructure.cluster_machines import list_machines
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.kinds import InfraClusterKind
from capsmith_runtime.infrastructure.workload_client import create_workload_client
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.caches import cluster_name_of, owning_cluster
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.status_reporter import StatusReporter


class InfraClusterController:
    """Reconciles one kind of infrastructure cluster."""

    def __init__(
        self, kind: InfraClusterKind, informer: Informer, context: InfrastructureContext
    ) -> None:
        self.kind = kind
        self._context = context
        self._caches = context.caches.core
        self._reporter = StatusReporter(
            kind,
            context,
            has_failure_fields=lambda _: True,
            is_provisioned=context.writer.is_provisioned,
        )
        self._author = AuthorStep(kind, context, self._reporter, has_account=True)
        self._dependents = ClusterDependents(context.client, context.caches.dependents)
        self._runner = ReconcileRunner(
            kind,
            informer,
            context,
            self._reporter,
            new_patcher=partial(
                Patcher,
                context.client,
                informer,
                context.writer,
                has_records=records.FEATURE in kind.features,
            ),
            forget=self._forget,
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile an infrastructure cluster.

        Failures are reported in its conditions.
        """
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        # Not even a finalizer is added or removed: these objects belong to another system or are
        # copies.
        if is_externally_managed(patcher.obj) or is_deleted_for_move(patcher.obj):
            return Result()
        if metadata.is_deleting(patcher.obj):
            return await self._reconcile_delete(key, patcher)
        cluster = self._caches.cluster(key.namespace, owning_cluster(patcher.obj))
        # Without an owner there is nothing to do yet; an event for the owner enqueues this object.
        if cluster is None or await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        return await self._reconcile_normal(patcher, cluster)

    async def _reconcile_normal(self, patcher: Patcher, cluster: Cluster) -> Result:
        # Before anything is created: after a crash, it must be found by this id (SM-08, SM-09).
        record = self._context.caches.identity.build_own_record(patcher.obj)
        await patcher.add_finalizer(self.kind, further=record)
        taken = self._context.caches.held_ids.find_taken(patcher.obj)
        if taken is not None:
            return await self._wait(patcher, taken)
        spec = await self._author.decode_spec(patcher)
        if spec is None:
            return Result()
        credentials = await self._context.credentials.of_object(patcher.obj)
        if isinstance(credentials, Waiting):
            return await self._wait(patcher, credentials)
        watched = self.kind.reconciler.watched_machines
        key = NamespacedName(cluster.namespace, cluster.name)
        scope = InfraClusterScope(
            **self._author.scope_fields(patcher.obj),
            _reference=create_owner_reference(self.kind.resource, patcher.obj),
            workload_client=create_workload_client(self.kind, cluster, self._context.workload),
            spec=spec,
            cluster=cluster,
            control_plane_endpoint=read_endpoint(patcher.obj),
            machines=await list_machines(self._context, key, watched),
            credentials=credentials,
        )
        hook = self._author.reconciler.reconcile_normal
        state = await self._author.call(patcher, hook, scope, InfraClusterState)
        if isinstance(state, Waiting):
            return await self._wait(patcher, state)
        return await self._write_state(patcher, state)

    async def _write_state(self, patcher: Patcher, state: InfraClusterState) -> Result:
        """Write the endpoint into the spec before the status, which makes core copy it (IC-02)."""
        facts = ClusterFacts(
            endpoint=state.control_plane_endpoint,
            failure_domains=state.failure_domains,
            extra=encode_status(state.status),
        )
        writer, features = self._context.writer, self.kind.features
        spec = writer.build_cluster_spec(patcher.obj, facts, features)
        await patcher.write_spec(spec, state.conditions)
        status = writer.build_cluster_status(patcher.obj, facts, features)
        return await self._reporter.report_state(patcher, status, state)

    async def _reconcile_delete(self, key: NamespacedName, patcher: Patcher) -> Result:
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        # Read live, because a pause that the cache does not contain yet must stop the deletion
        # (SM-01).
        cluster = await self._caches.live_cluster(key.namespace, cluster_name_of(patcher.obj))
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        taken = self._context.caches.held_ids.find_taken(patcher.obj)
        if taken is not None:
            return await self._wait(patcher, taken)
        # Machines need this object's region, network and credentials for their own deletion.
        waiting = await self._dependents.find_wait(key, cluster_name_of(patcher.obj))
        if waiting is not None:
            return await self._reporter.report_wait(patcher, waiting)
        scope = InfraClusterDeleteScope(
            **self._author.delete_scope_fields(patcher.obj),
            workload_client=create_workload_client(self.kind, cluster, self._context.workload),
            _credentials=await self._context.credentials.of_object(patcher.obj),
            cluster=cluster,
            control_plane_endpoint=read_endpoint(patcher.obj),
        )
        hook = self._author.reconciler.reconcile_delete
        result = await self._author.call(patcher, hook, scope, Deleted)
        if isinstance(result, Waiting):
            return await self._wait(patcher, result)
        await self._reporter.remove_finalizer(patcher)
        return self._forget(key)

    async def _wait(self, patcher: Patcher, waiting: Waiting) -> Result:
        """Write the partial results in ``waiting``, and return when to reconcile again."""
        possible = frozenset({"control_plane_endpoint", "failure_domains"})
        await self._reporter.check_partial_results(patcher, waiting, possible)
        writer, features = self._context.writer, self.kind.features
        # The next call finds the endpoint in the spec, even after a restart of the manager.
        if waiting.control_plane_endpoint is not None:
            endpoint = waiting.control_plane_endpoint
            await patcher.write_spec(add_endpoint(patcher.obj, endpoint, features))
        status = self._reporter.author_status(patcher, waiting.status)
        if waiting.failure_domains is not None:
            status = writer.set_failure_domains(status, waiting.failure_domains, features)
        return await self._reporter.report_wait(patcher, waiting, status)

    def _forget(self, key: NamespacedName) -> Result:
        self._reporter.forget(key)
        self._author.forget(key)
        self._dependents.forget(key)
        return Result()
