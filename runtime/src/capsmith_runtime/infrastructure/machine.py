"""Controller of infrastructure machines: the waits of IM-19 and the deletion of IM-25.

A machine without problems costs three write requests: finalizer and external id, provider id, and
status.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from capsmith_runtime.api.encoding import status_fields
from capsmith_runtime.contract import constants, guards, metadata
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.status_writer import (
    MachineFacts,
    address_list,
    set_or_drop,
    with_extra,
)
from capsmith_runtime.infrastructure.bootstrap_data import bootstrap_reader
from capsmith_runtime.infrastructure.cluster_infrastructure import (
    ClusterInfrastructure,
)
from capsmith_runtime.infrastructure.context import InfrastructureController
from capsmith_runtime.infrastructure.reconcilers import InfraMachineReconciler
from capsmith_runtime.infrastructure.results import InfraMachineState
from capsmith_runtime.infrastructure.scopes import InfraMachineDeleteScope, InfraMachineScope
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.reconcile.caches import cluster_name_of
from capsmith_runtime.reconcile.errors import ContractError
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Waiting


class InfraMachineController(InfrastructureController[InfraMachineReconciler[Any]]):
    """Reconcile one kind of infrastructure machines."""

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        obj = patcher.obj
        if guards.deleted_for_move(obj):
            return Result()
        machine = self._infrastructure.machine_of(obj)
        if metadata.deleting(obj):
            name = machine.cluster_name if machine is not None else cluster_name_of(obj)
            clean_up = partial(self._clean_up, patcher, machine, name)
            return await self._finalize(patcher, key, name, clean_up)
        name = machine.cluster_name if machine is not None else None
        cluster = self._caches.cluster(key.namespace, name)
        # Without owners there is nothing to do yet; events of the owners enqueue this object.
        if machine is None or cluster is None or await self._is_paused(patcher, cluster):
            return Result()
        return await self._normal(patcher, cluster, machine)

    async def _normal(self, patcher: Patcher, cluster: Cluster, machine: Machine) -> Result:
        ready = await self._prerequisites(patcher, cluster, machine, constants.MACHINE_KIND)
        if isinstance(ready, Result):
            return ready
        addresses = await self._infrastructure.addresses_of(patcher.obj, cluster)
        if isinstance(addresses, Waiting):
            return await self._wait(patcher, addresses)
        scope = InfraMachineScope(
            **self._owner_scope_fields(patcher.obj),
            workload_client=self._workload_client(cluster),
            spec=ready.spec,
            cluster=cluster,
            machine=machine,
            infra_cluster=ready.infra_cluster,
            provider_id=_provider_id(patcher.obj),
            failure_domain=machine.failure_domain,
            is_control_plane=machine.is_control_plane,
            credentials=ready.credentials,
            is_provisioned=self._context.writer.provisioned(patcher.obj),
            ip_addresses=addresses,
            _bootstrap=bootstrap_reader(self._context.client, machine),
            _loop=self._loop(),
        )
        state = await self._call(
            patcher, self.reconciler.reconcile_normal, scope, InfraMachineState
        )
        if isinstance(state, Waiting):
            return await self._wait(patcher, state)
        return await self._write(patcher, state)

    def _has_failure_fields(self, obj: JSON) -> bool:
        return True

    async def _write(self, patcher: Patcher, state: InfraMachineState) -> Result:
        await self._check_provider_id(patcher, state.provider_id)
        facts = MachineFacts(
            provider_id=state.provider_id,
            addresses=state.addresses,
            failure_domain=state.failure_domain,
            interruptible=state.interruptible,
            extra=status_fields(state.status),
        )
        writer, features = self._context.writer, self.kind.features
        spec = writer.machine_spec(patcher.obj, facts, features)
        await patcher.write_spec(spec, state.conditions)
        status = writer.machine_status(patcher.obj, facts, features)
        return await self._provisioned(patcher, status, state)

    async def _partial_status(self, patcher: Patcher, waiting: Waiting) -> JSON:
        await self._check_partial_results(patcher, waiting, {"provider_id", "addresses"})
        if waiting.provider_id is not None:
            await self._check_provider_id(patcher, waiting.provider_id)
            await patcher.write_spec(
                {**metadata.mapping(patcher.obj, "spec"), "providerID": waiting.provider_id}
            )
        status = with_extra(
            dict(metadata.mapping(patcher.obj, "status")), status_fields(waiting.status)
        )
        if waiting.addresses is not None and "addresses" in self.kind.features:
            set_or_drop(status, "addresses", address_list(waiting.addresses))
        return status

    async def _check_provider_id(self, patcher: Patcher, provider_id: str) -> None:
        """Refuse another id than the recorded one: it is the id of another server (IM-01)."""
        before = _provider_id(patcher.obj)
        if before is not None and before != provider_id:
            error = ContractError(
                constants.REASON_PROVIDER_ID_CHANGED,
                f"the provider id was {before} and must not change, but now is {provider_id}",
            )
            await self._failed(patcher, error)
            raise error

    async def _clean_up(
        self, patcher: Patcher, machine: Machine | None, name: str | None, cluster: Cluster | None
    ) -> Result:
        namespace = metadata.namespace(patcher.obj)
        infrastructure = ClusterInfrastructure.of(
            self._infrastructure, self._credentials, namespace, cluster, name
        )
        scope = InfraMachineDeleteScope(
            **self._delete_scope_fields(patcher.obj),
            workload_client=self._workload_client(cluster),
            _credentials=infrastructure.credentials,
            cluster=cluster,
            machine=machine,
            infra_cluster=infrastructure.infra_cluster,
            provider_id=_provider_id(patcher.obj),
            is_control_plane=_is_control_plane(patcher.obj, machine),
        )
        return await self._call_delete(patcher, self.reconciler.reconcile_delete, scope)


def _is_control_plane(obj: JSON, machine: Machine | None) -> bool:
    labelled = constants.CONTROL_PLANE_LABEL in metadata.labels(obj)
    return labelled or (machine is not None and machine.is_control_plane)


def _provider_id(obj: JSON) -> str | None:
    return metadata.text(obj, "spec", "providerID") or None
