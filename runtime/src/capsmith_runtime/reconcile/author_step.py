"""The step of a reconcile that runs the author's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.reconcile.author_calls import AuthorCalls, checked_result
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.scope_connection import connected
from capsmith_runtime.reconcile.scopes import DeleteScopeFields, ScopeFields
from capsmith_runtime.reconcile.status_reporter import StatusReporter, object_logger

R = TypeVar("R")
T = TypeVar("T")


class AuthorStep(Generic[R]):
    """Calls the methods of one reconciler with scopes, and reports their exceptions."""

    def __init__(
        self,
        kind: Kind[R],
        context: ControllerContext,
        reporter: StatusReporter,
        reconciler: R | None = None,
    ) -> None:
        """``reconciler`` is given if several controllers share one; by default it is a new one."""
        self.reconciler = reconciler if reconciler is not None else kind.reconciler()
        """The author's reconciler, whose methods are passed to :meth:`call`."""
        self._kind = kind
        self._context = context
        self._reporter = reporter
        self._calls = AuthorCalls(self.reconciler, context.sessions)
        self._deletions: dict[NamespacedName, float] = {}

    def forget(self, key: NamespacedName) -> None:
        """Drop what is kept for an object that no longer exists."""
        self._deletions.pop(key, None)
        self._calls.forget(key)

    async def decode_spec(self, patcher: Patcher) -> Any:
        """Return the typed spec; report one that cannot be read, and return None.

        No retry helps then: the caller ends the reconcile, and a change of the spec starts the
        next.
        """
        try:
            return self._decode(patcher.obj)
        except DecodingError as error:
            await self._reporter.report_error(patcher, constants.REASON_INVALID_SPEC, str(error))
            return None

    def scope_fields(self, obj: JSON) -> ScopeFields:
        """Return the attributes that the scopes of all kinds share."""
        key = key_of(obj)
        return {
            "name": key.name,
            "namespace": key.namespace,
            "external_id": self._kind.external_id(obj),
            "logger": object_logger(self._kind, key),
            "_status": metadata.mapping(obj, "status"),
        }

    def delete_scope_fields(self, obj: JSON) -> DeleteScopeFields:
        """Return the attributes that the scopes of deletions share.

        The first call for an object starts its ``deletion_seconds``.
        """
        now = monotonic()
        return {
            **self.scope_fields(obj),
            "_spec": self._decode_or_error(obj),
            "deletion_seconds": now - self._deletions.setdefault(key_of(obj), now),
        }

    async def call(
        self, patcher: Patcher, hook: Callable[..., object], scope: object, expected: type[T]
    ) -> T | Waiting:
        """Return the result of a method of the reconciler, which must have the expected type.

        NotAvailableError becomes the Waiting that it holds.  Any other exception is reported in
        the conditions and raised again, except DeferredError, which is no failure.
        """
        return await self.call_checked(
            patcher, hook, scope, lambda result: checked_result(hook, result, expected)
        )

    async def call_checked(
        self,
        patcher: Patcher,
        hook: Callable[..., object],
        scope: object,
        check: Callable[[Any], T],
    ) -> T | Waiting:
        """Call a method like :meth:`call`; ``check`` returns its result, or raises an error."""
        try:
            deletion = metadata.is_deleting(patcher.obj)
            with connected(scope, self._context, patcher.obj):
                key = key_of(patcher.obj)
                result = await self._calls.call(key, hook, scope, deletion=deletion)
            return check(result)
        except NotAvailableError as error:
            return error.waiting
        except DeferredError:
            raise
        except Exception as error:
            await self._reporter.report_failure(patcher, error)
            raise

    def _decode(self, obj: JSON) -> Any:
        return decode(self._kind.spec, metadata.mapping(obj, "spec"), "spec")

    def _decode_or_error(self, obj: JSON) -> Any:
        # A deletion must go on although the spec cannot be read: its scope raises the error then.
        try:
            return self._decode(obj)
        except DecodingError as error:
            return error
