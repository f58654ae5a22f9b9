"""Controller of control planes that consist of Machines."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from capsmith_runtime.contract import guards, metadata
from capsmith_runtime.contract.control_plane_facts import HEALTHY
from capsmith_runtime.contract.control_plane_status import CONTROL_PLANE_SHAPES
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.core_machines import CORE_MACHINES
from capsmith_runtime.contract.model import Condition, shortened
from capsmith_runtime.controlplane.api import ControlPlaneReconciler
from capsmith_runtime.controlplane.cluster_access import ClusterAccess
from capsmith_runtime.controlplane.contract_kinds import ContractKinds
from capsmith_runtime.controlplane.control_plane import (
    ControlPlane,
    deleted_cluster,
    load_control_plane,
)
from capsmith_runtime.controlplane.external_objects import CacheNotSyncedError, ExternalObjects
from capsmith_runtime.controlplane.hook_caller import HookCaller, TerminalHookCallError
from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.controlplane.lifecycle_hooks import control_plane_scope
from capsmith_runtime.controlplane.machine_client import MachineClient
from capsmith_runtime.controlplane.machine_conditions import write_machine_conditions
from capsmith_runtime.controlplane.patcher import ControlPlanePatcher
from capsmith_runtime.controlplane.reconcile_delete import DeleteReconciler
from capsmith_runtime.controlplane.reconcile_normal import NormalReconciler
from capsmith_runtime.controlplane.scale import MachineScaler
from capsmith_runtime.controlplane.status import control_plane_conditions, control_plane_facts
from capsmith_runtime.controlplane.summary import ReconcileSummary
from capsmith_runtime.controlplane.sync_machines import MachineSyncer
from capsmith_runtime.kube.client import JSON, ApiError, NamespacedName, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.errors import DeferredError
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.base import BaseController, ControllerContext
from capsmith_runtime.reconcile.caches import Caches, cluster_name_of, owning_cluster
from capsmith_runtime.reconcile.patcher import Patcher, paused
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting


class ControlPlaneController(BaseController[ControlPlaneReconciler[Any]]):
    """Reconciles one ControlPlane kind: at most one step, then the status."""

    def __init__(
        self,
        kind: ControlPlaneKind,
        informer: Informer,
        caches: Caches,
        context: ControllerContext,
        kinds: ContractKinds,
        external: ExternalObjects,
        access: ClusterAccess,
    ) -> None:
        super().__init__(kind, informer, caches, context)
        client = context.client
        self._kind = kind
        self._shape = CONTROL_PLANE_SHAPES[context.contract]
        self._core = CORE_MACHINES[caches.reader.version]
        machine_client = MachineClient(client, kinds, external, self._core)
        hooks = self._hooks = HookCaller(self.reconciler, context)
        self._summaries: dict[NamespacedName, ReconcileSummary] = {}
        self.scaler = MachineScaler(client, caches.machines, machine_client)
        self._syncer = MachineSyncer(client, caches.machines, self._core, external)
        self._access = access
        self._normal = NormalReconciler(
            hooks, self._syncer, self.scaler, access, context.sync_seconds
        )
        self._delete = DeleteReconciler(caches, self.scaler, machine_client, self._syncer)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        if not isinstance(patcher, ControlPlanePatcher) or guards.deleted_for_move(patcher.obj):
            return Result()
        if metadata.deleting(patcher.obj):
            name = cluster_name_of(patcher.obj)
            deletion = partial(self._reconcile_delete, patcher, key, name)
            return await self._finalize(patcher, key, name, deletion)
        cluster = self._caches.cluster(key.namespace, owning_cluster(patcher.obj))
        # Without an owner there is nothing to do yet; the owner reference triggers an event.
        if cluster is None or await self._is_paused(patcher, cluster):
            return Result()
        await patcher.add_finalizer(self._kind)
        spec = await self._decoded_spec(patcher)
        if spec is None:
            return Result()
        return await self._reconcile_normal(patcher, cluster, spec)

    async def _reconcile_normal(
        self, patcher: ControlPlanePatcher, cluster: Cluster, spec: Any
    ) -> Result:
        control_plane = self._load(patcher, cluster)
        summary = ReconcileSummary(initialized=self._shape.initialized(patcher.obj))
        scope = control_plane_scope(
            control_plane,
            summary,
            self._scope_fields(patcher.obj),
            spec,
            lambda: self._access.workload(cluster),
        )
        try:
            await self._normal.reconcile(control_plane, summary, scope)
        except NotAvailableError as error:
            summary.wait(error.waiting)
        except CacheNotSyncedError as error:
            summary.wait(Waiting("CacheIsEmpty", str(error), 1.0))
        except DeferredError:
            # Counters must not be outdated as long as the infrastructure refuses requests.
            earlier = self._summaries.get(key_of(patcher.obj))
            if earlier is not None:
                summary.keep_results_of_hooks(earlier)
                await self._write_status(control_plane, summary, complete=False)
            raise
        except ApiError:
            # The queue retries what failed; the status must not be outdated until then.
            with suppress(ApiError):
                await self._write_status(control_plane, summary, complete=False)
            raise
        self._summaries[key_of(patcher.obj)] = summary
        await self._write_status(control_plane, summary, complete=summary.error is None)
        await write_machine_conditions(self._caches, self._syncer, control_plane, summary)
        if summary.error is not None:
            raise summary.error
        return Result(min(summary.requeue, default=None))

    async def _reconcile_delete(
        self,
        patcher: ControlPlanePatcher,
        key: NamespacedName,
        name: str | None,
        cluster: Cluster | None,
    ) -> Result:
        control_plane = self._load(patcher, cluster or deleted_cluster(key.namespace, name or ""))
        summary = ReconcileSummary(initialized=self._shape.initialized(patcher.obj))
        try:
            if await self._delete.reconcile(control_plane, summary):
                return await self._release(patcher)
        except NotAvailableError as error:
            summary.wait(error.waiting)
        await self._write_status(control_plane, summary)
        return Result(min(summary.requeue, default=None))

    def _load(self, patcher: ControlPlanePatcher, cluster: Cluster) -> ControlPlane:
        return load_control_plane(
            self._kind,
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
        facts = control_plane_facts(control_plane, summary)
        status = self._shape.status(control_plane.obj, facts, self._kind.features)
        conditions = (*control_plane_conditions(control_plane, summary), paused(""))
        present, absent = self._shape.conditions(conditions), self._shape.absent(conditions)
        status = self._with_failure(control_plane, summary, status)
        await control_plane.patcher.patch_status(status, present, absent, complete=complete)

    def _with_failure(
        self, control_plane: ControlPlane, summary: ReconcileSummary, status: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the status with the terminal failure of a hook, until all hooks succeed."""
        error, writer = summary.error, self._context.writer
        if isinstance(error, TerminalHookCallError) and not metadata.deleting(control_plane.obj):
            return writer.with_failure(status, error.reason, error.message)
        if error is None and not summary.waits:
            return writer.without_failure(status)
        return status

    async def _report(self, patcher: Patcher, reason: str, message: str) -> None:
        """Report a problem of the object itself; Available keeps its value (CP-26)."""
        message = shortened(message.encode(errors="replace").decode())
        self._context.events.warn(patcher.obj, reason, message)
        healthy = Condition(type=HEALTHY, status=None, reason=reason, message=message)
        await patcher.write_conditions(healthy, paused(""))

    def _forget(self, key: NamespacedName) -> Result:
        self._hooks.forget(key)
        self._summaries.pop(key, None)
        return super()._forget(key)

    def _patcher(self, obj: JSON) -> Patcher:
        context = self._context
        return ControlPlanePatcher(context.client, self._informer, context.writer, obj)
