"""Decides when to call a control plane's author hooks, and calls them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from capsmith_runtime.contract import constants
from capsmith_runtime.contract.control_plane import (
    ControlPlaneMachine,
    is_waiting_for_pre_terminate,
)
from capsmith_runtime.controlplane.api import (
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneReconciler,
    ControlPlaneScope,
    WorkloadReader,
    connect_workload_client,
)
from capsmith_runtime.controlplane.control_plane import (
    ControlPlane,
    HookCallError,
    ReconcileSummary,
    TerminalHookCallError,
    has_other_pre_terminate_hooks,
    needs_remediation,
)
from capsmith_runtime.controlplane.sync_machines import MachineSyncer
from capsmith_runtime.errors import ContractError, ReconcileError, TerminalError
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.reconcile.author_step import AuthorCalls, connect_scope, describe_owner
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.results import (
    NotAvailableError,
    Waiting,
    describe_unexpected_result,
)
from capsmith_runtime.reconcile.scopes import ScopeFields
from capsmith_runtime.reconcile.status_reporter import describe_failure, limit_message

T = TypeVar("T")

_log = get_logger("control-plane")


class HookCaller:
    """Calls one kind's hooks; hooks that the author does not override are skipped.

    Methods raise HookCallError if the hook fails, and DeferredError if the hook may not be called
    yet.
    """

    def __init__(
        self,
        reconciler: ControlPlaneReconciler[Any],
        context: ControllerContext,
    ) -> None:
        self._reconciler = reconciler
        self._context = context
        self._events = context.events
        # Several hooks of an object may have to wait at the same time.
        self._calls: dict[NamespacedName, AuthorCalls] = {}

    def forget(self, key: NamespacedName) -> None:
        """Drop the recorded state of a control plane that no longer exists."""
        self._calls.pop(key, None)

    @property
    def has_before_remove(self) -> bool:
        """Return whether the reconciler overrides ``before_remove``."""
        return self._overrides("before_remove")

    async def is_initialized(self, obj: JSON, scope: ControlPlaneScope[Any]) -> bool | Waiting:
        """Return whether the API server accepts requests, or the Waiting that the hook returned."""
        if not self._overrides("is_initialized"):
            # The default needs no thread to wait in.
            return await scope.api_server_answers_async()
        return await self._call(obj, self._reconciler.is_initialized, scope, bool)

    async def health(
        self, obj: JSON, scope: ControlPlaneScope[Any]
    ) -> ControlPlaneHealth | Waiting:
        """Return the health of the members, or the Waiting that the hook returned."""
        if not self._overrides("health"):
            return ControlPlaneHealth()
        return await self._call(obj, self._reconciler.health, scope, ControlPlaneHealth)

    async def after_add(self, obj: JSON, member: ControlPlaneMember[Any]) -> Waiting | None:
        """Run the hook for a new member. Return the Waiting that the hook returned, or None."""
        if not self._overrides("after_add"):
            return None
        return await self._call(obj, self._reconciler.after_add, member, type(None))

    async def before_remove(self, obj: JSON, member: ControlPlaneMember[Any]) -> Waiting | None:
        """Run the hook for a member that is being deleted, and return None if it has completed.

        Otherwise returns the hook's Waiting.
        """
        if not self.has_before_remove:
            return None
        return await self._call(obj, self._reconciler.before_remove, member, type(None))

    def _overrides(self, method: str) -> bool:
        own, default = type(self._reconciler), ControlPlaneReconciler
        return getattr(own, method) is not getattr(default, method)

    async def _call(
        self,
        obj: JSON,
        hook: Callable[..., object],
        argument: ControlPlaneScope[Any] | ControlPlaneMember[Any],
        expected: type[T],
    ) -> T | Waiting:
        if isinstance(argument, ControlPlaneMember):
            scope, member = argument.control_plane, argument.machine.name
        else:
            scope, member = argument, ""
        key = (getattr(hook, "__name__", repr(hook)), member)
        calls = self._calls.get(key_of(obj))
        if calls is None:
            calls = AuthorCalls(self._reconciler, self._context.sessions)
            self._calls[key_of(obj)] = calls
        try:
            with connect_scope(scope, self._context, obj):
                # The former hook of this reconcile has ended its session.
                connect_workload_client(scope)
                result = await calls.call(
                    key, hook, scope, arguments=(argument,), owner=describe_owner(obj)
                )
        except NotAvailableError as error:
            return error.waiting
        except DeferredError:
            raise
        except Exception as error:
            raise self._failure(obj, error) from error
        if isinstance(result, (expected, Waiting)):
            return result
        message = describe_unexpected_result(hook, result, expected, Waiting)
        raise self._failure(obj, ContractError(constants.REASON_INVALID_RESULT, message))

    def _failure(self, obj: JSON, error: Exception) -> HookCallError:
        """Record an event, and return the error that the status reports."""
        reason, message = describe_failure(error)
        message = limit_message(message)
        self._events.warn(obj, reason, message)
        if isinstance(error, TerminalError):
            return TerminalHookCallError(reason, message, status=error.status)
        retry_after = error.retry_after if isinstance(error, ReconcileError) else None
        return HookCallError(reason, message, retry_after=retry_after)


PROBE_SECONDS = 5.0
"""Seconds between two requests to an API server that has never responded."""


class LifecycleHooks:
    """Calls the hooks that are due; if one fails, records the failure and skips later hooks."""

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
            # Recorded rather than raised, so that the reconcile still reports everything else in
            # the status.
            summary.fail(error)

    async def _initialize(
        self,
        control_plane: ControlPlane,
        summary: ReconcileSummary,
        scope: ControlPlaneScope[Any],
    ) -> None:
        """Call the hook only if there is a running Machine that will not be removed (CP-02).

        Nodes cannot serve as the criterion: core looks for Nodes only after initialisation.
        """
        running = [m for m in control_plane.machines if m.provider_id is not None]
        # If none will stay, a positive answer would be lost together with the Machine that gave it.
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
        # One at a time: until core has removed an earlier member, its loss counts against the
        # quorum.
        if not held or len(held) < len(deleting):
            return  # there is none, or an earlier removal has not finished
        machine = held[0]
        if has_other_pre_terminate_hooks(machine, hook) or not is_waiting_for_pre_terminate(
            machine
        ):
            return
        member = ControlPlaneMember(machine=machine, control_plane=scope)
        # After the last member, no other one is left that would have to remove it from etcd.
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
                # The hook of a Machine that is broken may never complete: only the replacement of
                # this Machine helps.  Until then, it has not joined, which delays everything else.
                blocks_scaling = not needs_remediation(machine)
                try:
                    result = await self._hooks.after_add(control_plane.obj, member)
                except HookCallError as error:
                    if blocks_scaling:
                        raise
                    summary.fail(error, blocks_scaling=False)
                    continue
                if isinstance(result, Waiting):
                    summary.wait(result, blocks_scaling=blocks_scaling)
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
            _warn_of_unknown_names(result, control_plane)
            summary.health, summary.is_health_known = result, True
            summary.requeue_after(result.requeue_after)
            return
        # Unknown health counts as unhealthy, so that nothing is scaled on a guess.
        summary.wait(result)
        message = result.message or result.reason
        unknown = {m.name: message for m in control_plane.machines if m.node_name is not None}
        summary.health = ControlPlaneHealth(unhealthy=unknown)


def _warn_of_unknown_names(health: ControlPlaneHealth, control_plane: ControlPlane) -> None:
    """Log the names that have no effect, for example because they are those of Nodes."""
    names = {machine.name for machine in control_plane.machines}
    for unknown in sorted(health.unhealthy.keys() - names):
        _log.warning(
            "health reports a name that no Machine of the control plane has",
            name=unknown,
            key=str(key_of(control_plane.obj)),
        )


def build_scope(
    control_plane: ControlPlane,
    summary: ReconcileSummary,
    fields: ScopeFields,
    spec: Any,
    workload: WorkloadReader,
) -> ControlPlaneScope[Any]:
    """Create the scope that the author's hooks receive.

    Must be called on the event loop, on which the scope later reads the workload cluster.
    """
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
    """Return whether initialisation can start again without the Machine."""
    joined = machine.node_name is not None or control_plane.annotations.added in machine.annotations
    return control_plane.is_deleting(machine) or (needs_remediation(machine) and not joined)
