"""Base controller of machine pools: waits, pausing and deletion (IM-19, MP-20)."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, TypeVar

from capsmith_runtime.contract import constants, guards, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.machine_pool import (
    MachinePool,
    owning_machine_pool,
    read_machine_pool,
)
from capsmith_runtime.contract.machine_pool_facts import (
    MAX_BYTES,
    MAX_INSTANCES,
    PoolFacts,
    fits,
    pool_spec,
    without_addresses,
)
from capsmith_runtime.contract.versions import POOL_STATUS_WRITERS
from capsmith_runtime.infrastructure.bootstrap_data import bootstrap_reader
from capsmith_runtime.infrastructure.cluster_infrastructure import (
    ClusterInfrastructure,
)
from capsmith_runtime.infrastructure.context import InfrastructureContext, InfrastructureController
from capsmith_runtime.infrastructure.machine_pool.api import (
    InfraMachinePoolDeleteScope,
    InfraMachinePoolScope,
    InfraMachinePoolState,
)
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import cluster_name_of
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import Patcher

R = TypeVar("R")


class MachinePoolController(InfrastructureController[R]):
    """Reconcile one kind of machine pools."""

    def __init__(
        self,
        kind: Kind[R],
        informer: Informer,
        context: InfrastructureContext,
        machine_pools: Informer,
    ) -> None:
        super().__init__(kind, informer, context)
        self._machine_pools = machine_pools
        self._pool_writer = POOL_STATUS_WRITERS[context.contract]

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        obj = patcher.obj
        if guards.deleted_for_move(obj):
            return Result()
        pool = self._machine_pool(obj)
        if metadata.deleting(obj):
            name = pool.cluster_name if pool is not None else cluster_name_of(obj)
            clean_up = partial(self._clean_up, patcher, pool, name)
            return await self._finalize(patcher, key, name, clean_up)
        name = pool.cluster_name if pool is not None else None
        cluster = self._caches.cluster(key.namespace, name)
        # Without owners there is nothing to do yet; events of the owners enqueue this object.
        if pool is None or cluster is None or await self._is_paused(patcher, cluster):
            return Result()
        if pool.deleting:
            return Result()  # core deletes the infrastructure next
        return await self._normal(patcher, cluster, pool)

    @abstractmethod
    async def _reconcile_pool(self, patcher: Patcher, scope: InfraMachinePoolScope[Any]) -> Result:
        """Create or update the pool."""

    @abstractmethod
    async def _delete_pool(
        self, patcher: Patcher, scope: InfraMachinePoolDeleteScope[Any]
    ) -> Result:
        """Delete the pool; remove the finalizer when nothing is left."""

    async def _normal(self, patcher: Patcher, cluster: Cluster, pool: MachinePool) -> Result:
        ready = await self._prerequisites(patcher, cluster, pool, constants.MACHINE_POOL_KIND)
        if isinstance(ready, Result):
            return ready
        scope = InfraMachinePoolScope(
            **self._owner_scope_fields(patcher.obj),
            spec=ready.spec,
            cluster=cluster,
            machine_pool=pool,
            infra_cluster=ready.infra_cluster,
            provider_ids=_provider_ids(patcher.obj),
            credentials=ready.credentials,
            _bootstrap=bootstrap_reader(self._context.client, pool),
            _loop=self._loop(),
        )
        return await self._reconcile_pool(patcher, scope)

    async def _clean_up(
        self, patcher: Patcher, pool: MachinePool | None, name: str | None, cluster: Cluster | None
    ) -> Result:
        namespace = metadata.namespace(patcher.obj)
        infrastructure = ClusterInfrastructure.of(
            self._infrastructure, self._credentials, namespace, cluster, name
        )
        scope = InfraMachinePoolDeleteScope(
            **self._delete_scope_fields(patcher.obj),
            _credentials=infrastructure.credentials,
            cluster=cluster,
            machine_pool=pool,
            infra_cluster=infrastructure.infra_cluster,
            provider_ids=_provider_ids(patcher.obj),
        )
        return await self._delete_pool(patcher, scope)

    async def _write_pool(
        self, patcher: Patcher, facts: PoolFacts, state: InfraMachinePoolState
    ) -> Result:
        """Write spec and status, without addresses if they are too large otherwise.

        If they are still too large, report it and leave both as they are.
        """
        features = self.kind.features
        for known in (facts, without_addresses(facts)):
            spec = pool_spec(patcher.obj, known, features)
            status = self._pool_writer.status(patcher.obj, known, features)
            if fits(spec, status):
                await patcher.write_spec(spec, state.conditions)
                return await self._provisioned(patcher, status, state)
        message = (
            f"{len(facts.provider_ids)} machines do not fit into spec.providerIDList and status: "
            f"an object holds at most {MAX_INSTANCES} of them, in {MAX_BYTES // 1024} KiB; "
            "divide them among several pools"
        )
        await self._report(patcher, constants.REASON_TOO_MANY_INSTANCES, message)
        return Result()

    async def _update_replicas(self, pool: MachinePool, observed: int) -> None:
        """Write the number that another autoscaler has set into the MachinePool (MP-17)."""
        if not pool.replicas_managed_elsewhere or pool.replicas == observed:
            return
        body = {"spec": {"replicas": observed}}
        key = NamespacedName(pool.namespace, pool.name)
        response = await self._context.client.patch(self._machine_pools.resource, key, body)
        self._machine_pools.update_from_write(response)

    def _machine_pool(self, obj: JSON) -> MachinePool | None:
        name = owning_machine_pool(obj)
        owner = (
            self._machine_pools.get(NamespacedName(metadata.namespace(obj), name)) if name else None
        )
        return read_machine_pool(owner) if owner is not None else None


def _provider_ids(obj: JSON) -> tuple[str, ...]:
    return tuple(metadata.items(obj, "spec", "providerIDList"))
