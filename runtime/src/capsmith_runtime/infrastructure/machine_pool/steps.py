"""Steps that the controllers for both types of machine pools share."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.machine_pool import (
    MachinePool,
    owning_machine_pool,
    read_machine_pool,
)
from capsmith_runtime.contract.machine_pool_status import (
    MAX_BYTES,
    MAX_INSTANCES,
    POOL_STATUS_WRITERS,
    PoolFacts,
    build_pool_spec,
    is_storable,
    list_reductions,
)
from capsmith_runtime.infrastructure.api import create_owner_reference
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolDeleteScope,
    InfraMachinePoolScope,
    InfraMachinePoolState,
)
from capsmith_runtime.infrastructure.prerequisites import (
    ClusterInfrastructure,
    create_bootstrap_reader,
)
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, key_of
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.caches import cluster_name_of
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import Patcher, utc_now
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.status_reporter import StatusReporter

GROWTH_SECONDS: Final = 5.0
"""Minimum seconds between two status writes for a growing pool."""


class MachinePoolClient:
    """Reads and writes the MachinePools that own one kind's pools."""

    def __init__(self, client: KubeClient, machine_pools: Informer) -> None:
        self._client = client
        self._machine_pools = machine_pools

    def find_owner(self, obj: JSON) -> MachinePool | None:
        """Return the MachinePool that owns a pool, from the cache, or None if it is not cached."""
        name = owning_machine_pool(obj)
        owner = (
            self._machine_pools.get(NamespacedName(metadata.namespace(obj), name)) if name else None
        )
        return read_machine_pool(owner) if owner is not None else None

    async def update_replicas(self, pool: MachinePool, observed: int) -> None:
        """Write to the MachinePool the size that an external autoscaler has set (MP-17).

        Does nothing unless an external autoscaler sets the size and it differs from ``observed``.
        """
        if not pool.replicas_managed_elsewhere or pool.replicas == observed:
            return
        # Without a resource version: nothing else is written, and the observed size is correct
        # whatever else has changed.
        body = {"spec": {"replicas": observed}}
        key = NamespacedName(pool.namespace, pool.name)
        response = await self._client.patch(self._machine_pools.resource, key, body)
        self._machine_pools.update_from_write(response)


class PoolReporter:
    """Writes the observed state of one kind's pools into their spec and status."""

    def __init__(
        self, kind: Kind[Any], context: InfrastructureContext, reporter: StatusReporter
    ) -> None:
        self._kind = kind
        self._reporter = reporter
        self._writer = POOL_STATUS_WRITERS[context.contract]
        self._growing: dict[NamespacedName, float] = {}
        """Time of the last status write for each growing pool."""

    def is_provisioned(self, obj: JSON) -> bool:
        """Return whether the pool was reported as provisioned."""
        return self._writer.is_provisioned(obj)

    def seconds_to_next_write(
        self, obj: JSON, facts: PoolFacts, state: InfraMachinePoolState
    ) -> float:
        """Return the seconds by which to delay a growing pool's next status write; 0 means now.

        Each write contains all of the pool's machines, so one write for each new machine would have
        quadratic cost. The writes that core waits for are never delayed: the one for the first
        machine, and the one after the last.
        """
        written = self._growing.get(key_of(obj))
        is_new = facts.provisioned and not self._writer.is_provisioned(obj)
        # Without an earlier write, as after a restart of the manager, there is nothing to wait for.
        if written is None or is_new or state.ready:
            return 0.0
        return max(0.0, written + GROWTH_SECONDS - monotonic())

    def forget(self, key: NamespacedName) -> None:
        """Forget the write times of a pool that no longer exists."""
        self._growing.pop(key, None)

    async def write(
        self, patcher: Patcher, facts: PoolFacts, state: InfraMachinePoolState
    ) -> Result:
        """Write the pool's spec and status.

        If the object would be too large, the machines lose their addresses, and then their
        conditions and the author's status fields. If it is too large even then, report that and
        leave spec and status unchanged.
        """
        if state.ready:
            self.forget(key_of(patcher.obj))
        else:
            self._growing[key_of(patcher.obj)] = monotonic()
        features = self._kind.features
        for known in list_reductions(facts):
            spec = build_pool_spec(patcher.obj, known, features)
            status = self._writer.build_status(patcher.obj, known, features, utc_now())
            if is_storable(spec, status):
                # The provider ids come before the status, which makes core read them.
                await patcher.write_spec(spec, state.conditions)
                return await self._reporter.report_state(patcher, status, state)
        message = describe_excess(len(facts.provider_ids))
        await self._reporter.report_error(patcher, constants.REASON_TOO_MANY_INSTANCES, message)
        return Result()


class PoolScopes:
    """Creates the scopes with which the author's methods are called for one kind of pool."""

    def __init__(
        self, kind: Kind[Any], context: InfrastructureContext, author: AuthorStep[Any]
    ) -> None:
        self._kind = kind
        self._context = context
        self._author = author

    async def normal(
        self, obj: JSON, spec: Any, cluster: Cluster, pool: MachinePool
    ) -> InfraMachinePoolScope[Any] | Waiting:
        """Return the scope for ``reconcile_normal``, or Waiting if a prerequisite is missing.

        See IM-19.
        """
        context = self._context
        infrastructure = await ClusterInfrastructure.of(
            context.caches, context.credentials, cluster.namespace, cluster, user=obj
        )
        credentials = infrastructure.ready_credentials
        if isinstance(credentials, Waiting):
            return credentials
        return InfraMachinePoolScope(
            **self._author.scope_fields(obj),
            _reference=create_owner_reference(self._kind.resource, obj),
            spec=spec,
            cluster=cluster,
            machine_pool=pool,
            infra_cluster=infrastructure.infra_cluster,
            provider_ids=_provider_ids(obj),
            credentials=credentials,
            _bootstrap=create_bootstrap_reader(context.client, pool),
            _loop=asyncio.get_running_loop(),
        )

    async def delete(
        self, obj: JSON, cluster: Cluster | None, pool: MachinePool | None
    ) -> InfraMachinePoolDeleteScope[Any]:
        """Return the scope for ``reconcile_delete``.

        ``cluster`` and ``pool`` are None if they have already been deleted.
        """
        context = self._context
        infrastructure = await ClusterInfrastructure.of(
            context.caches,
            context.credentials,
            metadata.namespace(obj),
            cluster,
            find_cluster_name(obj, pool),
            obj,
        )
        return InfraMachinePoolDeleteScope(
            **self._author.delete_scope_fields(obj),
            _credentials=infrastructure.credentials,
            cluster=cluster,
            machine_pool=pool,
            infra_cluster=infrastructure.infra_cluster,
            provider_ids=_provider_ids(obj),
        )


def describe_excess(count: int) -> str:
    """Return the message for a pool with more machines than its object can hold."""
    return (
        f"{count} machines do not fit into spec.providerIDList and status: "
        f"an object holds at most {MAX_INSTANCES} of them, in {MAX_BYTES // 1024} KiB; "
        "divide them among several pools"
    )


def find_cluster_name(obj: JSON, pool: MachinePool | None) -> str | None:
    """Return the name of a pool's Cluster, taken from its MachinePool or else from its label.

    Returns None if neither names a Cluster.
    """
    return pool.cluster_name if pool is not None else cluster_name_of(obj)


def _provider_ids(obj: JSON) -> tuple[str, ...]:
    return tuple(metadata.items(obj, "spec", "providerIDList"))
