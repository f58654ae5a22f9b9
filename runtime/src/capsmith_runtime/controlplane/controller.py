"""Controller for control planes that consist of Machines."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.control_plane import HEALTHY
from capsmith_runtime.contract.control_plane_shapes import CONTROL_PLANE_SHAPES, CORE_MACHINES
from capsmith_runtime.contract.core import Cluster, is_deleted_for_move
from capsmith_runtime.contract.model import Condition, shorten_message
from capsmith_runtime.controlplane.adoption import MachineAdopter
from capsmith_runtime.controlplane.api import ControlPlaneScope
from capsmith_runtime.controlplane.control_plane import (
    ControlPlane,
    ReconcileSummary,
    TerminalHookCallError,
    build_deleted_cluster,
    load_control_plane,
)
from capsmith_runtime.controlplane.external_objects import (
    CacheNotSyncedError,
    ContractKinds,
    ExternalObjects,
)
from capsmith_runtime.controlplane.hooks import HookCaller, LifecycleHooks, build_scope
from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.controlplane.machine_client import MachineClient
from capsmith_runtime.controlplane.patcher import ControlPlanePatcher
from capsmith_runtime.controlplane.rollout import find_next_rollout_seconds
from capsmith_runtime.controlplane.scale import CACHE_IS_STALE, MachineScaler
from capsmith_runtime.controlplane.secrets.cluster_secrets import ClusterAccess
from capsmith_runtime.controlplane.status import build_conditions, build_facts
from capsmith_runtime.controlplane.sync_machines import MachineSyncer, write_machine_conditions
from capsmith_runtime.controlplane.workers import ClusterWorkers
from capsmith_runtime.errors import ApiError, ForbiddenError
from capsmith_runtime.kube.client import NamespacedName, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.caches import Caches, cluster_name_of, owning_cluster
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.patcher import Patcher, paused
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.status_reporter import StatusReporter, describe_other_finalizers

WAITING_FOR_ENDPOINT: Final = Waiting(
    "WaitingForControlPlaneEndpoint", "Cluster has no spec.controlPlaneEndpoint yet", None
)
WAITING_FOR_INFRASTRUCTURE: Final = Waiting(
    constants.REASON_WAITING_FOR_INFRASTRUCTURE,
    "Cluster infrastructure is not provisioned yet",
    None,
)
WAITING_FOR_MACHINES: Final = "WaitingForMachineDeletion"
ADOPTION_FAILED: Final = "AdoptionFailed"


class ControlPlaneController:
    """Reconciles one ControlPlane kind: takes at most one step, then writes the status.

    Each reconcile starts from what it observes, and creates or deletes at most one Machine.  The
    next step follows from the resulting state, not from a plan (CP-20, CP-31).
    """

    def __init__(
        self,
        kind: ControlPlaneKind,
        informer: Informer,
        caches: Caches,
        context: ControllerContext,
        kinds: ContractKinds,
        external: ExternalObjects,
        access: ClusterAccess,
        workers: ClusterWorkers,
    ) -> None:
        self.kind = kind
        self._caches = caches
        self._context = context
        self._shape = CONTROL_PLANE_SHAPES[context.contract]
        self._core = CORE_MACHINES[caches.reader.version]
        self._access = access
        self._summaries: dict[NamespacedName, ReconcileSummary] = {}
        self._reporter = ControlPlaneReporter(kind, context)
        self._author = AuthorStep(kind, context, self._reporter)
        self._hooks = HookCaller(self._author.reconciler, context)
        machine_client = MachineClient(context.client, kinds, external, self._core)
        self.scaler = MachineScaler(context.client, caches.machines, machine_client)
        self._adopter = MachineAdopter(kind, context.client, caches, self._core)
        self._syncer = MachineSyncer(context.client, caches.machines, self._core, external)
        self._normal = NormalReconciler(
            self._hooks, self._syncer, self.scaler, access, context.sync_seconds
        )
        self._delete = DeleteReconciler(workers, self.scaler, machine_client, self._syncer)
        self._runner = ReconcileRunner(
            kind,
            informer,
            context,
            self._reporter,
            new_patcher=partial(ControlPlanePatcher, context.client, informer, context.writer),
            forget=self._forget,
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile a control plane.

        Failures are reported in its conditions.
        """
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: ControlPlanePatcher) -> Result:
        if is_deleted_for_move(patcher.obj):
            return Result()
        if metadata.is_deleting(patcher.obj):
            return await self._reconcile_delete(key, patcher)
        cluster = self._caches.cluster(key.namespace, owning_cluster(patcher.obj))
        # Without an owner there is nothing to do yet; the owner reference triggers an event.
        if cluster is None:
            return Result()
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        await patcher.add_finalizer(self.kind)
        spec = await self._author.decode_spec(patcher)
        if spec is None:
            return Result()
        return await self._reconcile_normal(patcher, cluster, spec)

    async def _reconcile_normal(
        self, patcher: ControlPlanePatcher, cluster: Cluster, spec: Any
    ) -> Result:
        not_adopted = await self._adopt_machines(patcher, cluster)
        control_plane = self._load(patcher, cluster)
        summary = ReconcileSummary(
            initialized=self._shape.is_initialized(patcher.obj), not_adopted=not_adopted
        )
        scope = build_scope(
            control_plane,
            summary,
            self._author.scope_fields(patcher.obj),
            spec,
            lambda: self._access.workload(cluster),
        )
        try:
            await self._normal.reconcile(control_plane, summary, scope)
        except NotAvailableError as error:
            summary.wait(error.waiting)
        except CacheNotSyncedError as error:
            summary.wait(Waiting("CacheIsEmpty", str(error), 5.0))
        except DeferredError:
            # The counters in the status must be current even while the infrastructure rejects
            # requests.
            earlier = self._summaries.get(key_of(patcher.obj))
            if earlier is not None:
                summary.keep_results_of_hooks(earlier)
                await self._write_status(control_plane, summary, complete=False)
            raise
        except ApiError as error:
            await self._write_status_after_error(control_plane, summary, error)
            raise
        self._summaries[key_of(patcher.obj)] = summary
        await self._write_status(control_plane, summary, complete=summary.error is None)
        await write_machine_conditions(self._caches, self._syncer, control_plane, summary)
        if summary.error is not None:
            raise summary.error
        return Result(min(summary.requeue, default=None))

    async def _write_status_after_error(
        self, control_plane: ControlPlane, summary: ReconcileSummary, error: ApiError
    ) -> None:
        """Write the current status, which must not wait until the queue retries the request."""
        if isinstance(error, ForbiddenError):
            summary.wait(_wait_for_permission(error))
        with suppress(ApiError):
            await self._write_status(control_plane, summary, complete=False)

    async def _adopt_machines(
        self, patcher: ControlPlanePatcher, cluster: Cluster
    ) -> Mapping[str, str]:
        """Adopt Machines without a controller, and return why others cannot be adopted, by name."""
        not_adopted = await self._adopter.adopt(patcher.obj, cluster.name)
        for text in not_adopted.values():
            self._context.events.warn(patcher.obj, ADOPTION_FAILED, text, action="Adopt")
        return not_adopted

    async def _reconcile_delete(self, key: NamespacedName, patcher: ControlPlanePatcher) -> Result:
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        name = cluster_name_of(patcher.obj)
        cluster = await self._caches.live_cluster(key.namespace, name)
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        if cluster is None:
            cluster = build_deleted_cluster(key.namespace, name or "")
        control_plane = self._load(patcher, cluster)
        summary = ReconcileSummary(initialized=self._shape.is_initialized(patcher.obj))
        try:
            if await self._delete.reconcile(control_plane, summary):
                if kept := describe_other_finalizers(patcher.obj, self.kind.finalizer):
                    summary.wait(Waiting(constants.REASON_DELETING, kept))
                    status = self._write_status(control_plane, summary)
                    await self._reporter.write_last_status(patcher.obj, status)
                await patcher.remove_finalizer(self.kind.finalizer)
                return self._forget(key)
        except NotAvailableError as error:
            summary.wait(error.waiting)
        except ForbiddenError as error:
            summary.wait(_wait_for_permission(error))
            await self._write_status(control_plane, summary)
            raise
        await self._write_status(control_plane, summary)
        return Result(min(summary.requeue, default=None))

    def _load(self, patcher: ControlPlanePatcher, cluster: Cluster) -> ControlPlane:
        return load_control_plane(
            self.kind,
            self._caches,
            self._shape,
            self._core,
            patcher,
            cluster,
            self.scaler.is_deleted,
            datetime.now(UTC),
        )

    async def _write_status(
        self, control_plane: ControlPlane, summary: ReconcileSummary, *, complete: bool = True
    ) -> None:
        facts = build_facts(control_plane, summary)
        status = self._shape.build_status(control_plane.obj, facts, self.kind.features)
        conditions = (*build_conditions(control_plane, summary), paused(""))
        present, absent = self._shape.select_conditions(
            conditions
        ), self._shape.find_obsolete_conditions(conditions)
        status = self._with_failure(control_plane, summary, status)
        patcher = control_plane.patcher
        if not summary.is_health_known:
            await patcher.patch_status(status, present, absent, complete=complete)
            return
        # The record always covers the author's conditions: after a crash between two writes, the
        # next reconcile still knows which conditions it may remove.
        types = {condition.type for condition in summary.health.conditions}
        await patcher.record_conditions(patcher.recorded_conditions | types)
        patcher.drop_conditions(patcher.recorded_conditions - types)
        await patcher.patch_status(status, present, absent, complete=complete)
        await patcher.record_conditions(types)

    def _with_failure(
        self, control_plane: ControlPlane, summary: ReconcileSummary, status: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the status with a hook's terminal failure, which stays until all hooks succeed."""
        error, writer = summary.error, self._context.writer
        if isinstance(error, TerminalHookCallError) and not metadata.is_deleting(control_plane.obj):
            return writer.add_failure(status, error.reason, error.message)
        if error is None and not summary.waits:
            return writer.remove_failure(status)
        return status

    def _forget(self, key: NamespacedName) -> Result:
        self._reporter.forget(key)
        self._author.forget(key)
        self._hooks.forget(key)
        self._summaries.pop(key, None)
        return Result()


class ControlPlaneReporter(StatusReporter):
    """Reports an object's problems in the Healthy condition, not in Available (CP-26)."""

    async def report_error(self, patcher: Patcher, reason: str, message: str) -> None:
        """Report an error in the Healthy condition and as an event.

        Raises ApiError if the write fails.
        """
        message = shorten_message(message.encode(errors="replace").decode())
        self._context.events.warn(patcher.obj, reason, message)
        healthy = Condition(type=HEALTHY, status=None, reason=reason, message=message)
        await patcher.write_conditions(healthy, paused(""))


class NormalReconciler:
    """Reconciles a control plane that is not being deleted, in phases.

    Each phase may record a wait and end the reconcile.
    """

    def __init__(
        self,
        hooks: HookCaller,
        syncer: MachineSyncer,
        scaler: MachineScaler,
        access: ClusterAccess,
        sync_seconds: float,
    ) -> None:
        self._hooks = hooks
        self._lifecycle_hooks = LifecycleHooks(hooks, syncer)
        self._syncer = syncer
        self._scaler = scaler
        self._access = access
        self._sync_seconds = sync_seconds

    async def reconcile(
        self,
        control_plane: ControlPlane,
        summary: ReconcileSummary,
        scope: ControlPlaneScope[Any],
    ) -> None:
        """Run the phases that are currently possible, and record results and waits in ``summary``.

        Raises NotAvailableError, CacheNotSyncedError and the API server's errors.
        """
        await self._reconcile_template(control_plane, summary)
        if not await self._is_cluster_ready(control_plane, summary):
            return
        await self._sync_machines(control_plane, summary)
        await self._scaler.remove_stale_annotations(control_plane, summary)
        await self._lifecycle_hooks.run(control_plane, summary, scope)
        if not summary.blocks_scaling and not control_plane.foreign_machines:
            await self._scaler.scale(control_plane, summary)
        seconds = find_next_rollout_seconds(
            control_plane.machines, control_plane.criteria, control_plane.now
        )
        summary.requeue_after(seconds)

    async def _reconcile_template(
        self, control_plane: ControlPlane, summary: ReconcileSummary
    ) -> None:
        """Make the Cluster an owner of the template, and record a wait if there is no template.

        Without a template no Machine can be created, but existing ones are reconciled (CP-21).
        """
        try:
            await self._syncer.reconcile_template(control_plane, summary)
        except NotAvailableError as error:
            summary.wait(error.waiting)

    async def _is_cluster_ready(
        self, control_plane: ControlPlane, summary: ReconcileSummary
    ) -> bool:
        """Return whether the cluster has infrastructure and an endpoint.

        Also creates the certificates and the kubeconfig.
        """
        if not control_plane.cluster.infrastructure_provisioned:
            summary.wait(WAITING_FOR_INFRASTRUCTURE)
            return False
        report = await self._access.reconcile_secrets(control_plane)
        summary.certificates, summary.certificates_message = report.waiting, report.message
        summary.requeue_after(report.seconds_to_renewal(self._sync_seconds))
        if control_plane.cluster.control_plane_endpoint is None:
            summary.wait(WAITING_FOR_ENDPOINT)
            return False
        if summary.certificates is not None:
            summary.wait(summary.certificates)
        return True

    async def _sync_machines(self, control_plane: ControlPlane, summary: ReconcileSummary) -> None:
        """Update all Machines in place, and find the outdated ones."""
        value = "" if self._hooks.has_before_remove else None
        for machine in control_plane.machines:
            hook = control_plane.annotations.pre_terminate_hook
            # On a Machine in deletion the hook is removed once `before_remove` has completed, and
            # must not return.
            hooks = {} if machine.deleting else {hook: value}
            reasons = await self._syncer.sync(control_plane, machine, hooks, summary)
            summary.outdated[machine.name] = reasons


def _wait_for_permission(error: ForbiddenError) -> Waiting:
    """Return the wait to report: retries cannot help before the permissions change."""
    return Waiting(error.reason, error.message, None)


# Deletion begins when the last worker is gone (CP-34): all Machines are deleted, then the parts of
# unfinished ones; finally, the finalizer is removed.
class DeleteReconciler:
    """Deletes all of a control plane's Machines together, because the quorum no longer matters."""

    def __init__(
        self,
        workers: ClusterWorkers,
        scaler: MachineScaler,
        machine_client: MachineClient,
        syncer: MachineSyncer,
    ) -> None:
        self._workers = workers
        self._scaler = scaler
        self._machine_client = machine_client
        self._syncer = syncer

    async def reconcile(self, control_plane: ControlPlane, summary: ReconcileSummary) -> bool:
        """Delete the Machines that can be deleted now, and return whether none is left.

        If some are left, the reason to wait is in ``summary``.
        """
        cluster = control_plane.cluster
        waiting = self._workers.find_wait(cluster.namespace, cluster.name)
        if waiting is not None:
            summary.wait(waiting)
            return False
        hook = control_plane.annotations.pre_terminate_hook
        for machine in control_plane.machines:
            if hook in machine.annotations:
                # No member remains for which etcd membership would matter.
                await self._syncer.annotate(machine, {hook: None})
            if not machine.deleting:
                await self._machine_client.delete(machine)
        if control_plane.machines:
            names = ", ".join(sorted(machine.name for machine in control_plane.machines))
            summary.wait(Waiting(WAITING_FOR_MACHINES, f"waits until {names} is gone", None))
            return False
        if not await self._scaler.clean_up(control_plane, summary):
            return False
        if not await self._scaler.is_cache_fresh(control_plane):
            summary.wait(CACHE_IS_STALE)
            return False
        return True
