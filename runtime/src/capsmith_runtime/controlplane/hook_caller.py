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
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.reconcile.author_calls import AuthorCalls
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
    """The hooks of one kind; each method raises HookCallError.

    It raises DeferredError if a hook may not be called yet.  The defaults are no calls.
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
        """Forget a control plane that no longer exists."""
        self._calls.pop(key, None)

    @property
    def has_before_remove(self) -> bool:
        """Whether the reconciler overrides ``before_remove``."""
        return self._overrides("before_remove")

    async def is_initialized(self, obj: JSON, scope: ControlPlaneScope[Any]) -> bool | Waiting:
        """Report whether the API server accepts requests."""
        if not self._overrides("is_initialized"):
            # The default needs no thread to wait in.
            return await scope.api_server_answers_async()
        return await self._call(obj, self._reconciler.is_initialized, scope, bool)

    async def health(
        self, obj: JSON, scope: ControlPlaneScope[Any]
    ) -> ControlPlaneHealth | Waiting:
        """Return which members are unhealthy."""
        if not self._overrides("health"):
            return ControlPlaneHealth()
        return await self._call(obj, self._reconciler.health, scope, ControlPlaneHealth)

    async def after_add(self, obj: JSON, member: ControlPlaneMember[Any]) -> Waiting | None:
        """Run the hook for a new member; None when it has completed."""
        if not self._overrides("after_add"):
            return None
        return await self._call(obj, self._reconciler.after_add, member, type(None))

    async def before_remove(self, obj: JSON, member: ControlPlaneMember[Any]) -> Waiting | None:
        """Run the hook for a member that is being deleted; None when it has completed."""
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
        scope, member = argument, ""
        if isinstance(argument, ControlPlaneMember):
            scope, member = argument.control_plane, argument.machine.name
        key = (getattr(hook, "__name__", repr(hook)), member)
        calls = self._calls.get(key_of(obj))
        if calls is None:
            calls = AuthorCalls(self._reconciler, self._context.sessions)
            self._calls[key_of(obj)] = calls
        try:
            with connected(scope, self._context, obj):
                result = await calls.call(key, hook, scope, arguments=(argument,))
        except NotAvailableError as error:
            return error.waiting
        except DeferredError:
            raise
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
