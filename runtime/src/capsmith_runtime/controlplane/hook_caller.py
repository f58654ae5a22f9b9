"""Calls the author's hooks of a control plane; a failure is an event and a HookCallError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from capsmith_runtime.contract import constants
from capsmith_runtime.controlplane.api import (
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneReconciler,
    ControlPlaneScope,
)
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.errors import (
    ContractError,
    ReconcileError,
    TerminalError,
    limited_message,
    reason_and_message,
)
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting, unexpected_result
from capsmith_runtime.reconcile.scope_connection import connected

T = TypeVar("T")


class HookCallError(ReconcileError):
    """A hook failed, or returned a value that it must not return."""


class TerminalHookCallError(HookCallError, TerminalError):
    """A hook raised TerminalError."""


class HookCaller:
    """The hooks of one kind; each method raises HookCallError."""

    def __init__(
        self,
        reconciler: ControlPlaneReconciler[Any],
        context: ControllerContext,
    ) -> None:
        self._reconciler = reconciler
        self._context = context
        self._events = context.events

    @property
    def has_before_remove(self) -> bool:
        """Whether the reconciler overrides ``before_remove``."""
        own = type(self._reconciler).before_remove
        return own is not ControlPlaneReconciler.before_remove

    async def is_initialized(self, obj: JSON, scope: ControlPlaneScope[Any]) -> bool | Waiting:
        """Report whether the API server accepts requests."""
        own = type(self._reconciler).is_initialized
        if own is ControlPlaneReconciler.is_initialized:
            # The default needs no thread to wait in.
            return await scope.api_server_answers_async()
        return await self._call(obj, self._reconciler.is_initialized, scope, bool)

    async def health(
        self, obj: JSON, scope: ControlPlaneScope[Any]
    ) -> ControlPlaneHealth | Waiting:
        """Return which members are unhealthy."""
        return await self._call(obj, self._reconciler.health, scope, ControlPlaneHealth)

    async def after_add(self, obj: JSON, member: ControlPlaneMember[Any]) -> Waiting | None:
        """Run the hook for a new member; None when it has completed."""
        return await self._call(obj, self._reconciler.after_add, member, type(None))

    async def before_remove(self, obj: JSON, member: ControlPlaneMember[Any]) -> Waiting | None:
        """Run the hook for a member that is being deleted; None when it has completed."""
        return await self._call(obj, self._reconciler.before_remove, member, type(None))

    async def _call(
        self, obj: JSON, hook: Callable[..., object], argument: object, expected: type[T]
    ) -> T | Waiting:
        try:
            scope = getattr(argument, "control_plane", argument)
            with connected(scope, self._context, obj):
                result = await self._context.executor.call(hook, argument)
        except NotAvailableError as error:
            return error.waiting
        except Exception as error:
            raise self._failure(obj, error) from error
        if isinstance(result, (expected, Waiting)):
            return result
        message = unexpected_result(hook, result, expected, Waiting)
        raise self._failure(obj, ContractError(constants.REASON_INVALID_RESULT, message))

    def _failure(self, obj: JSON, error: Exception) -> HookCallError:
        """Record an event, and return the error that the status reports."""
        reason, message = reason_and_message(error)
        message = limited_message(message)
        self._events.warn(obj, reason, message)
        if isinstance(error, TerminalError):
            return TerminalHookCallError(reason, message, status=error.status)
        retry_after = error.retry_after if isinstance(error, ReconcileError) else None
        return HookCallError(reason, message, retry_after=retry_after)
