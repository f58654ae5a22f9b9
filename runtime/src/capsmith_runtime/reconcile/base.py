"""Base class of the controllers that call an author's reconciler."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, pause_message
from capsmith_runtime.errors import InvalidRequestError, TerminalError
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.requeue import DeferredError, Priority
from capsmith_runtime.reconcile.author_calls import AuthorCalls, checked_result
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext as ControllerContext
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import ObjectDeletedError, Patcher, paused
from capsmith_runtime.reconcile.reporting import ReportingController
from capsmith_runtime.reconcile.results import Deleted, NotAvailableError, Waiting
from capsmith_runtime.reconcile.runner import log_changes, resync_seconds
from capsmith_runtime.reconcile.scope_connection import connected
from capsmith_runtime.reconcile.scopes import DeleteScopeFields, ScopeFields

R = TypeVar("R")
T = TypeVar("T")


class BaseController(ReportingController[R], ABC):
    """Controller of one kind: its cache, its reconciler, and the steps common to all kinds."""

    def __init__(
        self,
        kind: Kind[R],
        informer: Informer,
        caches: Caches,
        context: ControllerContext,
        reconciler: R | None = None,
    ) -> None:
        super().__init__(kind, context)
        # Several controllers may share one reconciler.
        self.reconciler = reconciler if reconciler is not None else kind.reconciler()
        self._author = AuthorCalls(self.reconciler, context.sessions)
        self._informer = informer
        self._caches = caches
        self._deletions: dict[NamespacedName, float] = {}

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile one object, or report in its conditions why that failed."""
        obj = self._informer.get(key)
        if obj is None:
            return self._forget(key)
        patcher = self._patcher(obj)
        if constants.OBSERVED_GENERATION in self.kind.features:
            patcher.track_generation()
        try:
            result = await self._reconcile(key, patcher)
        except ObjectDeletedError:
            return self._forget(key)
        except TerminalError as error:
            # It is reported already, and back-off would repeat a call that cannot succeed.
            self._logger(key).warning("terminal failure", error=str(error))
            result = Result(failed=True)
        except InvalidRequestError as error:
            # The CRD rejects what the reconciler returned: report it in the conditions.  A request
            # by the author's code is reported already.
            if error.is_of_runtime:
                await self._report(patcher, constants.REASON_INVALID_RESULT, error.message)
            raise
        log_changes(self.kind, key, obj, patcher.obj)
        # Events end waits; the sync period ends them if an event was missed (MG-05).
        if result.requeue_after is None:
            return Result(self._next_look(), Priority.LOW, failed=result.failed)
        return result

    @abstractmethod
    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        """Reconcile an object of this kind."""

    def _patcher(self, obj: JSON) -> Patcher:
        return Patcher(self._context.client, self._informer, self._context.writer, obj)

    def _scope_fields(self, obj: JSON) -> ScopeFields:
        """Return the attributes that the scopes of all kinds share."""
        key = key_of(obj)
        return {
            "name": key.name,
            "namespace": key.namespace,
            "external_id": self.kind.external_id(obj),
            "logger": self._logger(key),
            "_status": metadata.mapping(obj, "status"),
        }

    def _delete_scope_fields(self, obj: JSON) -> DeleteScopeFields:
        """Return the attributes that the scopes of deletions share."""
        now = monotonic()
        return {
            **self._scope_fields(obj),
            "_spec": self._spec_or_error(obj),
            "deletion_seconds": now - self._deletions.setdefault(key_of(obj), now),
        }

    def _forget(self, key: NamespacedName) -> Result:
        self._deletions.pop(key, None)
        self._debounce.forget(key)
        self._author.forget(key)
        return Result()

    async def _is_paused(self, patcher: Patcher, cluster: Cluster | None) -> bool:
        """Return whether the object is paused; write a change of the Paused condition (ST-08)."""
        message = pause_message(patcher.obj, self.kind.resource.kind, cluster)
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
            deletion = metadata.is_deleting(patcher.obj)
            with connected(scope, self._context, patcher.obj):
                key = key_of(patcher.obj)
                result = await self._author.call(key, hook, scope, deletion=deletion)
            return checked_result(hook, result, expected)
        except NotAvailableError as error:
            return error.waiting
        except DeferredError:
            raise
        except Exception as error:
            await self._failed(patcher, error)
            raise

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
        return self._forget(key_of(patcher.obj))

    def _next_look(self) -> float | None:
        return resync_seconds(self._context)

    @staticmethod
    def _loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()
