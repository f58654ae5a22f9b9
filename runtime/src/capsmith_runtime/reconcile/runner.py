"""The steps that all reconciles share: read the object, and convert the outcome to a Result."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from capsmith_runtime.contract import conditions, constants, metadata
from capsmith_runtime.errors import ForbiddenError, InvalidRequestError, TerminalError
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger, read_message
from capsmith_runtime.kube.requeue import Priority
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import ObjectDeletedError, Patcher
from capsmith_runtime.reconcile.status_reporter import StatusReporter, create_object_logger

P = TypeVar("P", bound=Patcher)


class ReconcileRunner(Generic[P]):
    """Runs the reconciles of one controller, each for a single object.

    Like controller-runtime's ``reconcile.AsReconciler``, it passes the object instead of its key.
    """

    def __init__(
        self,
        kind: Kind[Any],
        informer: Informer,
        context: ControllerContext,
        reporter: StatusReporter,
        *,
        new_patcher: Callable[[JSON], P],
        forget: Callable[[NamespacedName], Result],
    ) -> None:
        """Initialise for one controller.

        ``new_patcher`` creates the patcher for a reconcile. ``forget`` drops the controller's state
        for an object that no longer exists.
        """
        self._kind = kind
        self._informer = informer
        self._context = context
        self._reporter = reporter
        self._new_patcher = new_patcher
        self._forget = forget
        # Strings rather than tuples as keys: the garbage collector skips a dictionary if it tracks
        # none of its keys and values.
        self._uids: dict[str, str] = {}

    async def run(
        self, key: NamespacedName, reconcile: Callable[[NamespacedName, P], Awaitable[Result]]
    ) -> Result:
        """Reconcile an object from the cache.

        If ``reconcile`` returns no delay, the sync period applies.

        ``reconcile`` reports the exceptions that it raises. This method passes them on to the work
        queue, unless retrying cannot help because the object is gone or the failure is terminal.
        It reports only writes that the API server rejects.
        """
        obj = self._informer.get(key)
        if obj is None:
            self._uids.pop(str(key), None)
            return self._forget(key)
        # Deleted and created again before a worker saw that it was gone.
        if self._uids.setdefault(str(key), metadata.uid(obj)) != metadata.uid(obj):
            self._forget(key)
            self._uids[str(key)] = metadata.uid(obj)
        patcher = self._new_patcher(obj)
        if constants.OBSERVED_GENERATION in self._kind.features:
            patcher.track_generation()
        try:
            result = await reconcile(key, patcher)
        except ObjectDeletedError:
            self._uids.pop(str(key), None)
            return self._forget(key)
        except TerminalError as error:
            # It is reported already, and back-off would repeat a call that cannot succeed.
            log = create_object_logger(self._kind, key)
            log.warning("terminal failure", error=read_message(error))
            result = Result(failed=True)
        except (InvalidRequestError, ForbiddenError) as error:
            # The CRD rejects what the reconciler returned, or a quota or policy forbids an object
            # in the user's namespace: report it in the conditions.  A request by the author's code
            # is reported already.
            if error.is_of_runtime:
                is_invalid = isinstance(error, InvalidRequestError)
                reason = constants.REASON_INVALID_RESULT if is_invalid else error.reason
                await self._reporter.report_retried_error(patcher, reason, error.message)
            raise
        log_changes(self._kind, key, obj, patcher.obj)
        # Events end waits; the sync period ends them if an event was missed (MG-05).
        return add_resync(result, self._context)


def add_resync(result: Result, context: ControllerContext) -> Result:
    """Return ``result``, with a requeue after the sync period if it has no requeue time yet.

    If the sync period is 0, there is no requeue.
    """
    if result.requeue_after is not None:
        return result
    return Result(resync_seconds(context), Priority.LOW, failed=result.failed)


def resync_seconds(context: ControllerContext) -> float | None:
    """Return the seconds until the next reconcile if no event arrives, or None if disabled."""
    if context.sync_seconds <= 0:
        return None
    # Jitter spreads the reconciles of objects that were created together.
    return context.sync_seconds * random.uniform(0.9, 1.1)


def log_changes(kind: Kind[Any], key: NamespacedName, before: JSON, after: JSON) -> None:
    """Log if an object is new, has a new reason to wait, was provisioned, or was deleted."""
    logger = get_logger("reconcile", kind=kind.resource.kind, object=str(key))
    had, has = (kind.finalizer in metadata.finalizers(obj) for obj in (before, after))
    if has and not had:
        logger.info("new object", external_id=kind.external_id(after))
    old, new = _ready_of(before), _ready_of(after)
    if had and not has:
        logger.info("deleted")
    elif new.get("status") == "True" and old.get("status") != "True":
        logger.info("provisioned")
    elif new.get("status") in ("False", "Unknown") and old.get("reason") != new.get("reason"):
        logger.info("waiting", reason=new.get("reason"), message=new.get("message"))


def _ready_of(obj: JSON) -> Mapping[str, Any]:
    """Return an object's Ready condition, or an empty mapping if it has none."""
    shown = metadata.items(obj, "status", "conditions")
    return conditions.find(shown, constants.READY_CONDITION) or {}
