"""Base class of the controllers that call an author's reconciler."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from capsmith_runtime.api.decoding import DecodingError, decode
from capsmith_runtime.api.encoding import status_fields
from capsmith_runtime.contract import constants, guards, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Condition
from capsmith_runtime.contract.status_writer import StatusWriter, with_extra
from capsmith_runtime.kube.client import JSON, ApiError, Invalid, KubeClient, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.events import EventRecorder
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import Logger, get_logger
from capsmith_runtime.kube.priority import Priority
from capsmith_runtime.options import Options
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.changes import log_changes
from capsmith_runtime.reconcile.debounce import StatusDebounce
from capsmith_runtime.reconcile.errors import (
    ContractError,
    TerminalError,
    limited_message,
    reason_and_message,
)
from capsmith_runtime.reconcile.events import send_events
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import ObjectDeletedError, Patcher, paused, ready
from capsmith_runtime.reconcile.results import (
    Deleted,
    NotAvailableError,
    State,
    Terminated,
    Waiting,
    unexpected_result,
)
from capsmith_runtime.reconcile.scopes import ScopeFields

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerContext:
    """Dependencies that all controllers of a manager share."""

    client: KubeClient
    label: str
    """The provider's manifest label, such as ``infrastructure-acme``."""
    contract: str
    """The contract version in which status and spec are written."""
    executor: HandlerExecutor
    events: EventRecorder
    writer: StatusWriter
    sync_seconds: float = 600.0
    """Interval of reconciles without events, with jitter; 0 disables them."""
    debounce_seconds: float = 2.0
    """How long a wait must last before it is written into the status."""
    options: Options = field(default_factory=Options)
    """Options of the manager."""


class BaseController(ABC, Generic[R]):
    """Controller of one kind: its cache, its reconciler, and the steps common to all kinds."""

    def __init__(
        self,
        kind: Kind[R],
        informer: Informer,
        caches: Caches,
        context: ControllerContext,
        reconciler: R | None = None,
    ) -> None:
        self.kind = kind
        # Several controllers may share one reconciler.
        self.reconciler = reconciler if reconciler is not None else kind.reconciler()
        self._informer = informer
        self._caches = caches
        self._context = context
        self._debounce = StatusDebounce(context.debounce_seconds)

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile one object, or report in its conditions why that failed."""
        obj = self._informer.get(key)
        if obj is None:
            return self._forget(key)
        patcher = self._patcher(obj)
        try:
            result = await self._reconcile(key, patcher)
        except ObjectDeletedError:
            return self._forget(key)
        except TerminalError as error:
            # It is reported already, and back-off would repeat a call that cannot succeed.
            self._logger(key).warning("terminal failure", error=str(error))
            result = Result()
        except Invalid as error:
            # The CRD rejects what the reconciler returned: report it in the conditions.
            await self._report(patcher, constants.REASON_INVALID_RESULT, error.message)
            raise
        log_changes(self.kind, key, obj, patcher.obj)
        # Events end waits; the sync period ends them if an event was missed (MG-05).
        if result.requeue_after is None:
            return Result(self._next_look(), Priority.LOW)
        return result

    @abstractmethod
    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        """Reconcile an object of this kind."""

    def _patcher(self, obj: JSON) -> Patcher:
        return Patcher(self._context.client, self._informer, self._context.writer, obj)

    def _logger(self, key: NamespacedName) -> Logger:
        return get_logger("author", kind=self.kind.resource.kind, object=str(key))

    def _scope_fields(self, obj: JSON) -> ScopeFields:
        """Return the attributes that the scopes of all kinds share."""
        key = _key(obj)
        return {
            "name": key.name,
            "namespace": key.namespace,
            "external_id": self.kind.external_id(obj),
            "logger": self._logger(key),
            "_status": metadata.mapping(obj, "status"),
        }

    def _forget(self, key: NamespacedName) -> Result:
        self._debounce.forget(key)
        return Result()

    async def _is_paused(self, patcher: Patcher, cluster: Cluster | None) -> bool:
        """Return whether the object is paused; write a change of the Paused condition (ST-08)."""
        message = guards.pause_message(patcher.obj, self.kind.resource.kind, cluster)
        if message or patcher.shows(constants.PAUSED_CONDITION, status="True"):
            await patcher.write_conditions(paused(message))
        return bool(message)

    async def _decoded_spec(self, patcher: Patcher) -> Any:
        """Return the spec, or None if it cannot be read, which the conditions then report."""
        try:
            return self._spec(patcher.obj)
        except DecodingError as error:
            await self._report(patcher, constants.REASON_INVALID_SPEC, str(error))
            return None

    def _spec(self, obj: JSON) -> Any:
        return decode(self.kind.spec, metadata.mapping(obj, "spec"), "spec")

    def _spec_or_error(self, obj: JSON) -> Any:
        try:
            return self._spec(obj)
        except DecodingError as error:
            return error

    async def _call(
        self, patcher: Patcher, hook: Callable[..., object], scope: object, expected: type[T]
    ) -> T | Waiting:
        """Return the result of a reconciler method; report exceptions and raise them again."""
        try:
            send_events(scope, self._context.events, patcher.obj)
            result = await self._context.executor.call(hook, scope)
            if isinstance(result, (expected, Waiting)):
                return result
            if isinstance(result, Terminated):
                raise TerminalError(result.reason, result.message, status=result.status)
            message = unexpected_result(hook, result, expected, Waiting)
            raise ContractError(constants.REASON_INVALID_RESULT, message)
        except NotAvailableError as error:
            return error.waiting
        except Exception as error:
            await self._failed(patcher, error)
            raise

    async def _failed(self, patcher: Patcher, error: Exception) -> None:
        if isinstance(error, TerminalError):
            await self._write_terminal_failure(patcher, error)
        else:
            await self._report(patcher, *reason_and_message(error))

    async def _write_terminal_failure(self, patcher: Patcher, error: TerminalError) -> None:
        """Report a terminal failure; a provisioned object stays provisioned (IC-05, IM-03)."""
        message = limited_message(error.message)
        self._context.events.warn(patcher.obj, error.reason, message)
        status = dict(metadata.mapping(patcher.obj, "status"))
        status = with_extra(status, status_fields(error.status))
        if self._has_failure_fields(patcher.obj) and not metadata.deleting(patcher.obj):
            status = self._context.writer.with_failure(status, error.reason, message)
        # Unlike a retried error this one is not reported again soon: a failed write is raised.
        await patcher.write_status(
            status, (ready(False, error.reason, message, "Error"), paused(""))
        )

    def _has_failure_fields(self, obj: JSON) -> bool:
        """Return whether core reads a terminal failure of the object, in contract v1beta1."""
        return False

    async def _report(self, patcher: Patcher, reason: str, message: str) -> None:
        """Report an error in the Ready condition and as an event."""
        message = limited_message(message)
        self._context.events.warn(patcher.obj, reason, message)
        try:
            await patcher.write_conditions(ready(False, reason, message, "Error"), paused(""))
        except ApiError as error:
            # The original error is retried and reported again: this one must not replace it.
            self._logger(_key(patcher.obj)).warning("cannot write conditions", error=str(error))

    async def _wait(self, patcher: Patcher, waiting: Waiting) -> Result:
        """Return when to reconcile again; write the reason once the wait lasts long enough."""
        status = await self._partial_status(patcher, waiting)
        left = self._debounce.left(_key(patcher.obj), waiting.reason)
        requeue_after = waiting.requeue_after
        # New partial results are not delayed: after a crash they could not be found again.
        if left > 0 and status == metadata.mapping(patcher.obj, "status"):
            return Result(left if requeue_after is None else min(left, requeue_after))
        await patcher.write_status(
            status, (ready(False, waiting.reason, waiting.message, "Info"), paused(""))
        )
        return Result(requeue_after)

    async def _partial_status(self, patcher: Patcher, waiting: Waiting) -> JSON:
        """Return the status with what is known so far."""
        if waiting.provider_id is not None or waiting.addresses is not None:
            message = f"a {self.kind.resource.kind} has no provider_id and addresses while it waits"
            error = ContractError(constants.REASON_INVALID_RESULT, message)
            await self._failed(patcher, error)
            raise error
        status = dict(metadata.mapping(patcher.obj, "status"))
        return with_extra(status, status_fields(waiting.status))

    async def _provisioned(self, patcher: Patcher, status: JSON, state: State) -> Result:
        """Write the status of a provisioned object, with one request."""
        default_reason = constants.REASON_READY if state.ready else constants.REASON_NOT_READY
        conditions: Sequence[Condition] = (
            ready(state.ready, state.reason or default_reason, state.message),
            paused(""),
            *state.conditions,
        )
        types = {condition.type for condition in state.conditions}
        await patcher.record_conditions(patcher.recorded_conditions | types)
        patcher.drop_conditions(patcher.recorded_conditions - types)
        await patcher.write_status(self._context.writer.without_failure(status), conditions)
        await patcher.record_conditions(types)
        self._debounce.forget(_key(patcher.obj))
        return Result(state.requeue_after)

    async def _finalize(
        self,
        patcher: Patcher,
        key: NamespacedName,
        cluster_name: str | None,
        clean_up: Callable[[Cluster | None], Awaitable[Result]],
    ) -> Result:
        """Clean up what an object in deletion stands for, unless it is paused or has no finalizer.

        ``clean_up`` gets the Cluster, or None if that was deleted already.
        """
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        cluster = await self._caches.live_cluster(key.namespace, cluster_name)
        if await self._is_paused(patcher, cluster):
            return Result()
        return await clean_up(cluster)

    async def _call_delete(
        self, patcher: Patcher, hook: Callable[..., object], scope: object
    ) -> Result:
        """Call the author's ``reconcile_delete``; remove the finalizer after Deleted."""
        result = await self._call(patcher, hook, scope, Deleted)
        if isinstance(result, Waiting):
            return await self._wait(patcher, result)
        return await self._release(patcher)

    async def _release(self, patcher: Patcher) -> Result:
        await patcher.remove_finalizer(self.kind.finalizer)
        return self._forget(_key(patcher.obj))

    def _next_look(self) -> float | None:
        if self._context.sync_seconds <= 0:
            return None
        # Jitter spreads the reconciles of objects that were created together.
        return self._context.sync_seconds * random.uniform(0.9, 1.1)

    @staticmethod
    def _loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()


def _key(obj: JSON) -> NamespacedName:
    return NamespacedName(metadata.namespace(obj), metadata.name(obj))
