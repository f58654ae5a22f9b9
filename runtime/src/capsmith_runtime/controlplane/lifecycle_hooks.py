"""Call the author's hooks: initialisation, after a join, before a removal, health."""

from __future__ import annotations

import asyncio
from typing import Any

from capsmith_runtime.contract.control_plane import (
    ControlPlaneMachine,
    is_waiting_for_pre_terminate,
)
from capsmith_runtime.controlplane.api import (
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneScope,
    WorkloadReader,
)
from capsmith_runtime.controlplane.control_plane import ControlPlane
from capsmith_runtime.controlplane.hook_caller import HookCaller, HookCallError
from capsmith_runtime.controlplane.machine_filters import (
    has_other_pre_terminate_hooks,
    needs_remediation,
)
from capsmith_runtime.controlplane.summary import ReconcileSummary
from capsmith_runtime.controlplane.sync_machines import MachineSyncer
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.scopes import ScopeFields

PROBE_SECONDS = 5.0
"""Interval of requests to an API server that has never answered."""


class LifecycleHooks:
    """Calls the hooks that are due; a failure is recorded and stops only the hooks after it."""

    def __init__(self, hooks: HookCaller, syncer: MachineSyncer) -> None:
        self._hooks = hooks
        self._syncer = syncer

    async def run(
        self,
        control_plane: ControlPlane,
        summary: ReconcileSummary,
        scope: ControlPlaneScope[Any],
    ) -> None:
        """Call all hooks that are due, and record their results in the summary."""
        try:
            if not summary.initialized:
                await self._initialize(control_plane, summary, scope)
            await self._before_remove(control_plane, summary, scope)
            await self._after_add(control_plane, summary, scope)
            if summary.initialized:
                await self._health(control_plane, summary, scope)
        except HookCallError as error:
            summary.error = error

    async def _initialize(
        self,
        control_plane: ControlPlane,
        summary: ReconcileSummary,
        scope: ControlPlaneScope[Any],
    ) -> None:
        """Call the hook only if there is a running Machine that will not be removed (CP-02).

        Nodes are no evidence: core looks for them only after initialisation.
        """
        running = [m for m in control_plane.machines if m.provider_id is not None]
        if all(_is_expendable(machine, control_plane) for machine in running):
            return
        result = await self._hooks.is_initialized(control_plane.obj, scope)
        if isinstance(result, Waiting):
            summary.wait(result)
            return
        summary.initialized = result
        if not result:
            summary.requeue_after(PROBE_SECONDS)

    async def _before_remove(
        self,
        control_plane: ControlPlane,
        summary: ReconcileSummary,
        scope: ControlPlaneScope[Any],
    ) -> None:
        """Run the hook for one deleted Machine at a time, in the order of deletion (SM-05)."""
        hook = control_plane.annotations.pre_terminate_hook
        deleting = [
            machine
            for machine in sorted(control_plane.machines, key=lambda m: (m.deleted or "", m.name))
            if machine.deleting
        ]
        held = [machine for machine in deleting if hook in machine.annotations]
        if not held or len(held) < len(deleting):
            return  # there is none, or an earlier removal has not finished
        machine = held[0]
        if has_other_pre_terminate_hooks(machine, hook) or not is_waiting_for_pre_terminate(
            machine
        ):
            return
        member = ControlPlaneMember(machine=machine, control_plane=scope)
        if len(control_plane.machines) > 1:
            result = await self._hooks.before_remove(control_plane.obj, member)
            if isinstance(result, Waiting):
                summary.wait(result)
                return
        await self._syncer.annotate(machine, {hook: None})

    async def _after_add(
        self,
        control_plane: ControlPlane,
        summary: ReconcileSummary,
        scope: ControlPlaneScope[Any],
    ) -> None:
        annotation = control_plane.annotations.added
        for machine in control_plane.machines:
            if annotation in machine.annotations:
                summary.added.add(machine.name)
            elif machine.node_name is not None and not machine.deleting:
                member = ControlPlaneMember(machine=machine, control_plane=scope)
                result = await self._hooks.after_add(control_plane.obj, member)
                if isinstance(result, Waiting):
                    summary.wait(result)
                    continue
                # After a crash at this point the hook runs again; once this is written, never.
                await self._syncer.annotate(machine, {annotation: ""})
                summary.added.add(machine.name)

    async def _health(
        self,
        control_plane: ControlPlane,
        summary: ReconcileSummary,
        scope: ControlPlaneScope[Any],
    ) -> None:
        result = await self._hooks.health(control_plane.obj, scope)
        if isinstance(result, ControlPlaneHealth):
            summary.health = result
            summary.requeue_after(result.requeue_after)
            return
        # Unknown health counts as unhealthy, so that nothing is scaled on a guess.
        summary.wait(result)
        message = result.message or result.reason
        unknown = {m.name: message for m in control_plane.machines if m.node_name is not None}
        summary.health = ControlPlaneHealth(unhealthy=unknown)


def control_plane_scope(
    control_plane: ControlPlane,
    summary: ReconcileSummary,
    fields: ScopeFields,
    spec: Any,
    workload: WorkloadReader,
) -> ControlPlaneScope[Any]:
    """Return the argument of the hooks."""
    return ControlPlaneScope(
        **fields,
        spec=spec,
        cluster=control_plane.cluster,
        version=control_plane.criteria.version,
        replicas=control_plane.replicas,
        machines=control_plane.machines,
        initialized=summary.initialized,
        _workload=workload,
        _loop=asyncio.get_running_loop(),
    )


def _is_expendable(machine: ControlPlaneMachine, control_plane: ControlPlane) -> bool:
    """Report whether initialisation can start over without the Machine."""
    joined = machine.node_name is not None or control_plane.annotations.added in machine.annotations
    return control_plane.is_deleting(machine) or (needs_remediation(machine) and not joined)
