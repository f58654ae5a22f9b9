"""Controller for machine pools without Machines, such as scaling groups (IM-19, MP-20)."""

from __future__ import annotations

from functools import partial

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, is_deleted_for_move
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.contract.machine_pool_status import (
    POOL_STATUS_WRITERS,
    InstanceFacts,
    PoolFacts,
)
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.machine_pool.kinds import InfraMachinePoolKind
from capsmith_runtime.infrastructure.machine_pool.steps import (
    MachinePoolClient,
    PoolReporter,
    PoolScopes,
    find_cluster_name,
)
from capsmith_runtime.infrastructure.machine_pool_api import InfraMachinePoolState
from capsmith_runtime.infrastructure.prerequisites import find_core_blocker
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.status_reporter import StatusReporter


class InfraMachinePoolController:
    """Reconciles one kind of machine pool without Machines."""

    def __init__(
        self,
        kind: InfraMachinePoolKind,
        informer: Informer,
        context: InfrastructureContext,
        machine_pools: Informer,
    ) -> None:
        self.kind = kind
        self._caches = context.caches.core
        self._infrastructure = context.caches
        self._held_ids = context.caches.held_ids
        self._reporter = StatusReporter(
            kind, context, is_provisioned=POOL_STATUS_WRITERS[context.contract].is_provisioned
        )
        self._author = AuthorStep(kind, context, self._reporter, has_account=True)
        self._machine_pools = MachinePoolClient(context.client, machine_pools)
        self._status = PoolReporter(kind, context, self._reporter)
        self._scopes = PoolScopes(kind, context, self._author)
        self._runner = ReconcileRunner(
            kind,
            informer,
            context,
            self._reporter,
            new_patcher=partial(Patcher, context.client, informer, context.writer),
            forget=self._forget,
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile a pool.

        Failures are reported in its conditions.
        """
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        if is_deleted_for_move(patcher.obj):
            return Result()
        pool = self._machine_pools.find_owner(patcher.obj)
        if metadata.is_deleting(patcher.obj):
            return await self._reconcile_delete(key, patcher, pool)
        cluster = self._caches.cluster(key.namespace, pool.cluster_name if pool else None)
        # Without owners there is nothing to do yet; events for the owners enqueue this object.
        if pool is None or cluster is None:
            return Result()
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        if pool.deleting:
            return Result()  # core deletes the infrastructure next
        return await self._reconcile_normal(patcher, cluster, pool)

    async def _reconcile_normal(
        self, patcher: Patcher, cluster: Cluster, pool: MachinePool
    ) -> Result:
        # Before anything is created: after a crash, the pool must be found by this id (SM-08,
        # SM-09).
        record = self._infrastructure.identity_record(patcher.obj, cluster)
        await patcher.add_finalizer(self.kind, further=record)
        taken = await self._held_ids.find_taken_of_many(patcher.obj)
        blocker = taken or find_core_blocker(cluster, pool, constants.MACHINE_POOL_KIND)
        if blocker is not None:
            return await self._reporter.report_wait(patcher, blocker)
        spec = await self._author.decode_spec(patcher)
        if spec is None:
            return Result()
        scope = await self._scopes.normal(patcher.obj, spec, cluster, pool)
        if isinstance(scope, Waiting):
            return await self._reporter.report_wait(patcher, scope)
        hook = self._author.reconciler.reconcile_normal
        state = await self._author.call(patcher, hook, scope, InfraMachinePoolState)
        if isinstance(state, Waiting):
            return await self._reporter.report_wait(patcher, state)
        result = await self._status.write(patcher, _facts(state), state)
        desired = len(state.instances) if state.replicas is None else state.replicas
        await self._machine_pools.update_replicas(pool, desired)
        return result

    async def _reconcile_delete(
        self, key: NamespacedName, patcher: Patcher, pool: MachinePool | None
    ) -> Result:
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        name = find_cluster_name(patcher.obj, pool)
        # Read live, because a pause that the cache does not contain yet must stop the deletion
        # (SM-01).
        cluster = await self._caches.live_cluster(key.namespace, name)
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        # An object with a copied id must not delete the group of the id's holder.
        taken = await self._held_ids.find_taken_of_many(patcher.obj)
        if taken is not None:
            return await self._reporter.report_wait(patcher, taken)
        scope = await self._scopes.delete(patcher.obj, cluster, pool)
        hook = self._author.reconciler.reconcile_delete
        result = await self._author.call(patcher, hook, scope, Deleted)
        if isinstance(result, Waiting):
            return await self._reporter.report_wait(patcher, result)
        await self._reporter.remove_finalizer(patcher)
        return self._forget(key)

    def _forget(self, key: NamespacedName) -> Result:
        self._status.forget(key)
        self._reporter.forget(key)
        self._author.forget(key)
        return Result()


def _facts(state: InfraMachinePoolState) -> PoolFacts:
    instances = [
        InstanceFacts(
            name=instance.name,
            provider_id=instance.provider_id,
            addresses=instance.addresses,
            version=instance.version,
            ready=instance.ready,
            conditions=instance.conditions,
            extra=encode_status(instance.status),
        )
        for instance in state.instances
    ]
    return PoolFacts(
        provisioned=True,
        provider_ids=[instance.provider_id for instance in instances],
        provider_id=state.provider_id,
        instances=instances,
        extra=encode_status(state.status),
    )
