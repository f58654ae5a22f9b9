"""Controller for pools whose machines are infrastructure machines with Machines (MP-07).

Core creates a Machine for each infrastructure machine, which is then reconciled like any other.
Outdated machines are replaced one at a time, unless the author allows more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, is_deleted_for_move
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.contract.machine_pool_status import (
    MAX_INSTANCES,
    POOL_STATUS_WRITERS,
    InstanceFacts,
    PoolFacts,
)
from capsmith_runtime.contract.model import Address
from capsmith_runtime.errors import ContractError
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.machine_pool.create import PoolMachineClient
from capsmith_runtime.infrastructure.machine_pool.kinds import MachinePoolMachinesKind
from capsmith_runtime.infrastructure.machine_pool.plan import PoolMember, Rollout, plan
from capsmith_runtime.infrastructure.machine_pool.pool_machines import (
    CachedPoolMachines,
    PoolMachines,
    PoolMachinesLister,
)
from capsmith_runtime.infrastructure.machine_pool.steps import (
    MachinePoolClient,
    PoolReporter,
    PoolScopes,
    describe_excess,
    find_cluster_name,
)
from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolScope,
    InfraMachinePoolState,
)
from capsmith_runtime.infrastructure.prerequisites import find_core_blocker
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.status_reporter import StatusReporter

MAX_DELETED: Final = 100
"""Maximum number of machines of a deleted pool that one reconcile deletes."""
_DELETE_SECONDS: Final = 1.0
_NAME_TAKEN_SECONDS: Final = 1.0


class _Look(NamedTuple):
    """The inputs of a pool's reconcile."""

    obj: JSON
    pool: MachinePool
    desired: int | None
    found: CachedPoolMachines


class MachinePoolMachinesController:
    """Reconciles one kind of machine pool with Machines."""

    def __init__(
        self,
        kind: MachinePoolMachinesKind,
        informer: Informer,
        context: InfrastructureContext,
        machine_pools: Informer,
    ) -> None:
        self.kind = kind
        self._context = context
        self._caches = context.caches.core
        self._infrastructure = context.caches
        self._reporter = StatusReporter(
            kind, context, is_provisioned=POOL_STATUS_WRITERS[context.contract].is_provisioned
        )
        self._author = AuthorStep(kind, context, self._reporter)
        self._rollout(0)  # reject invalid limits at startup
        self._machine_pools = MachinePoolClient(context.client, machine_pools)
        self._status = PoolReporter(kind, context, self._reporter)
        self._scopes = PoolScopes(kind, context, self._author)
        self._lister = PoolMachinesLister(context.caches, kind)
        self._machines_client = PoolMachineClient(context.client, kind, self._lister)
        self._expectations = self._machines_client.expectations
        self._settled: dict[NamespacedName, _Look] = {}
        """Inputs of each pool's last reconcile, if there was nothing to do."""
        self._instances: dict[NamespacedName, dict[str, tuple[JSON, InstanceFacts]]] = {}
        """The infrastructure machines of each pool, with what was last read from them."""
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
        return await self._reconcile_normal(key, patcher, cluster, pool)

    async def _reconcile_normal(
        self, key: NamespacedName, patcher: Patcher, cluster: Cluster, pool: MachinePool
    ) -> Result:
        record = self._infrastructure.identity_record(patcher.obj, cluster)
        await patcher.add_finalizer(self.kind, further=record)
        blocker = find_core_blocker(cluster, pool, constants.MACHINE_POOL_KIND)
        if blocker is not None:
            return await self._reporter.report_wait(patcher, blocker)
        spec = await self._author.decode_spec(patcher)
        if spec is None:
            return Result()
        scope = await self._scopes.normal(patcher.obj, spec, cluster, pool)
        if isinstance(scope, Waiting):
            return await self._reporter.report_wait(patcher, scope)
        desired = await self._desired_replicas(patcher, scope)
        if isinstance(desired, Waiting):
            return await self._reporter.report_wait(patcher, desired)
        if desired is not None and desired > MAX_INSTANCES:
            reason, message = constants.REASON_TOO_MANY_INSTANCES, describe_excess(desired)
            await self._reporter.report_error(patcher, reason, message)
            return Result()
        return await self._reconcile_machines(key, patcher, pool, desired)

    async def _reconcile_machines(
        self, key: NamespacedName, patcher: Patcher, pool: MachinePool, desired: int | None
    ) -> Result:
        """Apply the next step towards ``desired`` machines, and report the existing ones."""
        found = self._lister.select(patcher.obj)
        # Most reconciles follow an event of one machine that changes nothing for its pool.
        if self._settled.get(key) == _Look(patcher.obj, pool, desired, found):
            self._reporter.forget(key)
            return Result()
        machines = self._lister.read(patcher.obj, found)
        await self._machines_client.update_metadata(patcher.obj, machines)
        requeue_after = None
        has_work = self._has_work(patcher.obj, pool, machines, desired)
        if has_work:
            machines, requeue_after = await self._next_step(patcher, pool, machines, desired)
        members = self._lister.members(machines, patcher.obj, pool.version)
        alive = sum(not member.deleting for member in members)
        target = alive if desired is None else desired
        # After a restart, all machines were read just now, which takes tens of milliseconds: let
        # the event loop run before the next such step.
        await asyncio.sleep(0)
        facts = self._facts(patcher.obj, machines, target)
        await asyncio.sleep(0)
        state = _state(members, facts, target, requeue_after)
        left = self._status.seconds_to_next_write(patcher.obj, facts, state)
        if left > 0:
            return Result(left if requeue_after is None else min(left, requeue_after))
        result = await self._status.write(patcher, facts, state)
        await self._machine_pools.update_replicas(pool, target)
        if not has_work:
            self._settled[key] = _Look(patcher.obj, pool, desired, found)
        return result

    async def _reconcile_delete(
        self, key: NamespacedName, patcher: Patcher, pool: MachinePool | None
    ) -> Result:
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        name = find_cluster_name(patcher.obj, pool)
        cluster = await self._caches.live_cluster(key.namespace, name)
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        # The cache may lag: without the live list, machines could be left behind.
        cached = self._lister.read(patcher.obj, self._lister.select(patcher.obj))
        machines = cached or await self._lister.live(patcher.obj)
        if not machines:
            await self._reporter.remove_finalizer(patcher)
            return self._forget(key)
        names = machines.names_to_delete()
        # A pause must not have to wait until thousands of machines have been deleted.
        await self._machines_client.delete(patcher.obj, machines, names[:MAX_DELETED])
        count = len(machines.infra_machines.keys() | machines.machines.keys())
        requeue_after = _DELETE_SECONDS if len(names) > MAX_DELETED else None
        waiting = Waiting("Deleting", f"machines left: {count}", requeue_after)
        return await self._reporter.report_wait(patcher, waiting)

    def _forget(self, key: NamespacedName) -> Result:
        self._settled.pop(key, None)
        self._instances.pop(key, None)
        self._machines_client.forget(key)
        self._lister.forget(key)
        self._status.forget(key)
        self._reporter.forget(key)
        self._author.forget(key)
        return Result()

    async def _desired_replicas(
        self, patcher: Patcher, scope: InfraMachinePoolScope[Any]
    ) -> int | Waiting | None:
        """Return the desired number of machines, or None to leave them unchanged (MP-17)."""
        if not scope.replicas_managed_elsewhere:
            return scope.replicas
        hook = self._author.reconciler.replicas
        return await self._author.call_checked(patcher, hook, scope, _check_replicas)

    def _rollout(self, desired: int | None) -> Rollout:
        """Return the reconciler's rollout limits for a pool of ``desired`` machines.

        Raises ValueError if a limit is neither a number nor a percentage.
        """
        reconciler = self._author.reconciler
        return Rollout.of(reconciler.max_surge, reconciler.max_unavailable, desired or 0)

    def _has_work(
        self, obj: JSON, pool: MachinePool, machines: PoolMachines, desired: int | None
    ) -> bool:
        members = self._lister.members(machines, obj, pool.version)
        step = plan(members, desired, self._rollout(desired))
        return bool(step.create or step.delete or machines.orphaned_machines)

    async def _next_step(
        self,
        patcher: Patcher,
        pool: MachinePool,
        machines: PoolMachines,
        desired: int | None,
    ) -> tuple[PoolMachines, float | None]:
        """Apply the next plan once the caches show the effects of the last one.

        Returns the machines, and the seconds until the next reconcile or None if an event will
        follow.
        """
        left = self._expectations.seconds_left(patcher.obj, machines)
        if left > 0:
            return machines, left
        # A machine that has left the watch filter is not in the cache, but its Machine is.
        if machines.orphaned_machines or self._expectations.needs_live(patcher.obj):
            machines = await self._lister.live(patcher.obj)
            self._expectations.begin(patcher.obj)
        return machines, await self._apply_plan(patcher, pool, machines, desired)

    async def _apply_plan(
        self,
        patcher: Patcher,
        pool: MachinePool,
        machines: PoolMachines,
        desired: int | None,
    ) -> float | None:
        """Apply the next plan.

        Returns the seconds until the next reconcile, or None if an event will follow.
        """
        members = self._lister.members(machines, patcher.obj, pool.version)
        step = plan(members, desired, self._rollout(desired))
        for machine in machines.orphaned_machines:
            await self._machines_client.delete_machine(patcher.obj, machine)
        await self._machines_client.delete(
            patcher.obj, machines, [member.name for member in step.delete]
        )
        if step.create and not await self._machines_client.create(
            patcher, pool, members, step.create
        ):
            return _NAME_TAKEN_SECONDS
        return None

    def _facts(self, obj: JSON, machines: PoolMachines, desired: int) -> PoolFacts:
        instances = self._read_instances(key_of(obj), machines)
        existing = [instance for instance in instances if instance.provider_id]
        # One machine that does not start must not hide the others: the pool is complete when all
        # infrastructure machines exist and at least one of them is provisioned.
        complete = len(instances) >= desired and (not desired or bool(existing))
        return PoolFacts(
            provisioned=complete or self._status.is_provisioned(obj),
            provider_ids=[instance.provider_id for instance in existing],
            instances=existing,
            machine_kind=self.kind.machines.kind,
        )

    def _read_instances(self, pool: NamespacedName, machines: PoolMachines) -> list[InstanceFacts]:
        """Return what the pool's status shows of its machines.

        Only machines that have changed since the last call are read again.
        """
        known = self._instances.get(pool, {})
        found: dict[str, tuple[JSON, InstanceFacts]] = {}
        for name, machine in machines.infra_machines.items():
            entry = known.get(name)
            # Compared by identity: a cache replaces an object that has changed.
            if entry is None or entry[0] is not machine:
                entry = machine, self._instance(name, machine)
            found[name] = entry
        self._instances[pool] = found
        return [instance for _, instance in found.values()]

    def _instance(self, name: str, machine: JSON) -> InstanceFacts:
        addresses = [
            Address(entry["type"], entry["address"])
            for entry in metadata.items(machine, "status", "addresses")
        ]
        version = metadata.annotations(machine).get(self.kind.version_annotation)
        return InstanceFacts(
            name=name,
            provider_id=metadata.text(machine, "spec", "providerID"),
            addresses=addresses,
            version=version,
            ready=self._context.writer.is_provisioned(machine),
        )


def _check_replicas(replicas: int | None) -> int | None:
    if replicas is not None and not 0 <= replicas <= MAX_INSTANCES:
        raise ContractError(constants.REASON_INVALID_RESULT, f"replicas is {replicas}")
    return replicas


def _state(
    members: Sequence[PoolMember], facts: PoolFacts, desired: int, requeue_after: float | None
) -> InfraMachinePoolState:
    """Return the state that the Ready condition reports for these machines."""
    deleting = {member.name for member in members if member.deleting}
    provisioned = sum(one.ready and one.name not in deleting for one in facts.instances)
    outdated = sum(member.outdated for member in members if not member.deleting)
    if provisioned < desired:
        message = f"{provisioned} of {desired} machines are provisioned"
        return InfraMachinePoolState(
            ready=False, reason="ScalingUp", message=message, requeue_after=requeue_after
        )
    if outdated:
        alive = len(members) - len(deleting)
        reason, message = "RollingOut", f"{outdated} of {alive} machines have an outdated spec"
    elif len(members) > desired:
        reason, message = "ScalingDown", f"{len(members) - desired} machines too many"
    else:
        reason, message = "", ""
    return InfraMachinePoolState(reason=reason, message=message, requeue_after=requeue_after)
