"""Controller of infrastructure clusters (IC-19, IC-20)."""

from __future__ import annotations

from functools import partial
from typing import Any

from capsmith_runtime.api.encoding import status_fields
from capsmith_runtime.contract import guards, metadata
from capsmith_runtime.contract.core import Cluster, read_endpoint
from capsmith_runtime.contract.status_writer import ClusterFacts, with_endpoint, with_extra
from capsmith_runtime.infrastructure.context import InfrastructureController
from capsmith_runtime.infrastructure.reconcilers import InfraClusterReconciler
from capsmith_runtime.infrastructure.results import InfraClusterState
from capsmith_runtime.infrastructure.scopes import InfraClusterDeleteScope, InfraClusterScope
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.reconcile.caches import cluster_name_of, owning_cluster
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Waiting


class InfraClusterController(InfrastructureController[InfraClusterReconciler[Any]]):
    """Reconcile one kind of infrastructure clusters."""

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        obj = patcher.obj
        if guards.externally_managed(obj) or guards.deleted_for_move(obj):
            return Result()
        if metadata.deleting(obj):
            clean_up = partial(self._clean_up, patcher)
            return await self._finalize(patcher, key, cluster_name_of(obj), clean_up)
        cluster = self._caches.cluster(key.namespace, owning_cluster(obj))
        # Without an owner there is nothing to do yet; an event of the owner enqueues this object.
        if cluster is None or await self._is_paused(patcher, cluster):
            return Result()
        return await self._normal(patcher, cluster)

    async def _normal(self, patcher: Patcher, cluster: Cluster) -> Result:
        await patcher.add_finalizer(self.kind)
        spec = await self._decoded_spec(patcher)
        if spec is None:
            return Result()
        credentials = self._credentials.of_cluster(patcher.obj)
        if isinstance(credentials, Waiting):
            return await self._wait(patcher, credentials)
        scope = InfraClusterScope(
            **self._owner_scope_fields(patcher.obj),
            workload_client=self._workload_client(cluster),
            spec=spec,
            cluster=cluster,
            control_plane_endpoint=read_endpoint(patcher.obj),
            credentials=credentials,
        )
        state = await self._call(
            patcher, self.reconciler.reconcile_normal, scope, InfraClusterState
        )
        if isinstance(state, Waiting):
            return await self._wait(patcher, state)
        return await self._write(patcher, state)

    def _has_failure_fields(self, obj: JSON) -> bool:
        return True

    async def _partial_status(self, patcher: Patcher, waiting: Waiting) -> JSON:
        possible = {"control_plane_endpoint", "failure_domains"}
        await self._check_partial_results(patcher, waiting, possible)
        writer, features = self._context.writer, self.kind.features
        if waiting.control_plane_endpoint is not None:
            endpoint = waiting.control_plane_endpoint
            await patcher.write_spec(with_endpoint(patcher.obj, endpoint, features))
        status = with_extra(
            dict(metadata.mapping(patcher.obj, "status")), status_fields(waiting.status)
        )
        if waiting.failure_domains is not None:
            status = writer.with_failure_domains(status, waiting.failure_domains, features)
        return status

    async def _write(self, patcher: Patcher, state: InfraClusterState) -> Result:
        facts = ClusterFacts(
            endpoint=state.control_plane_endpoint,
            failure_domains=state.failure_domains,
            extra=status_fields(state.status),
        )
        writer, features = self._context.writer, self.kind.features
        spec = writer.cluster_spec(patcher.obj, facts, features)
        await patcher.write_spec(spec, state.conditions)
        status = writer.cluster_status(patcher.obj, facts, features)
        return await self._provisioned(patcher, status, state)

    async def _clean_up(self, patcher: Patcher, cluster: Cluster | None) -> Result:
        scope = InfraClusterDeleteScope(
            **self._delete_scope_fields(patcher.obj),
            workload_client=self._workload_client(cluster),
            _credentials=self._credentials.of_cluster(patcher.obj),
            cluster=cluster,
            control_plane_endpoint=read_endpoint(patcher.obj),
        )
        return await self._call_delete(patcher, self.reconciler.reconcile_delete, scope)
