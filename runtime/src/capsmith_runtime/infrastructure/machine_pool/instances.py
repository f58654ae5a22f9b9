"""Controller of machine pools without Machines, which the author's code manages as a whole."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.api.encoding import status_fields
from capsmith_runtime.contract.machine_pool_facts import InstanceFacts, PoolFacts
from capsmith_runtime.infrastructure.machine_pool.api import (
    InfraMachinePoolDeleteScope,
    InfraMachinePoolReconciler,
    InfraMachinePoolScope,
    InfraMachinePoolState,
)
from capsmith_runtime.infrastructure.machine_pool.pool import MachinePoolController
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Waiting


class InfraMachinePoolController(MachinePoolController[InfraMachinePoolReconciler[Any]]):
    """Reconcile one kind of machine pools without Machines."""

    async def _reconcile_pool(self, patcher: Patcher, scope: InfraMachinePoolScope[Any]) -> Result:
        hook = self.reconciler.reconcile_normal
        state = await self._call(patcher, hook, scope, InfraMachinePoolState)
        if isinstance(state, Waiting):
            return await self._wait(patcher, state)
        result = await self._write_pool(patcher, _facts(state), state)
        desired = len(state.instances) if state.replicas is None else state.replicas
        await self._update_replicas(scope.machine_pool, desired)
        return result

    async def _delete_pool(
        self, patcher: Patcher, scope: InfraMachinePoolDeleteScope[Any]
    ) -> Result:
        return await self._call_delete(patcher, self.reconciler.reconcile_delete, scope)


def _facts(state: InfraMachinePoolState) -> PoolFacts:
    instances = [
        InstanceFacts(
            name=instance.name,
            provider_id=instance.provider_id,
            addresses=instance.addresses,
            version=instance.version,
            ready=instance.ready,
        )
        for instance in state.instances
    ]
    return PoolFacts(
        provisioned=True,
        provider_ids=[instance.provider_id for instance in instances],
        provider_id=state.provider_id,
        instances=instances,
        extra=status_fields(state.status),
    )
