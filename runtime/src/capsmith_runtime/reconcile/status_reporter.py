"""Reports the outcome of a reconcile to users and core, in conditions, status and events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from typing import Any, Final, NoReturn

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.contract import conditions, constants, metadata
from capsmith_runtime.contract.core import Cluster, pause_message
from capsmith_runtime.contract.model import Condition
from capsmith_runtime.contract.status_writer import set_extra_fields
from capsmith_runtime.errors import (
    ApiError,
    ContractError,
    InvalidRequestError,
    ReconcileError,
    TerminalError,
)
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.hidden_values import redact
from capsmith_runtime.kube.log import Logger, describe_error, get_logger
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import Patcher, paused, ready
from capsmith_runtime.reconcile.results import State, Waiting


class StatusDebounce:
    """Tracks how long each object has been waiting, and why; a restart resets the record."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[NamespacedName, tuple[str, float]] = {}

    def left(self, key: NamespacedName, reason: str) -> float:
        """Return the seconds until a wait for ``reason`` must be written, or 0 if it is due now."""
        known, since = self._since.get(key, ("", 0.0))
        if known != reason:
            since = self._clock()
            self._since[key] = (reason, since)
        return max(0.0, since + self._seconds - self._clock())

    def forget(self, key: NamespacedName) -> None:
        """Drop the recorded wait of an object."""
        self._since.pop(key, None)


_PARTIAL_RESULTS: Final = (
    "addresses",
    "control_plane_endpoint",
    "failure_domains",
    "provider_id",
)
"""Fields of Waiting that only some kinds support."""
_MESSAGE_CHARACTERS: Final = 4096
"""Maximum length of a message in characters; the CRD allows up to 32,768 (ST-01)."""


def create_object_logger(kind: Kind[Any], key: NamespacedName) -> Logger:
    """Create a logger whose records name the object; the author's code gets the same logger."""
    return get_logger("author", kind=kind.resource.kind, object=str(key))


def describe_failure(error: Exception) -> tuple[str, str]:
    """Return the Ready condition's reason and message for an exception from the author's code."""
    # For a request of the runtime, such as reading bootstrap data: the error's own reason would
    # suggest that the author's code sent it.
    is_of_runtime = isinstance(error, ApiError) and error.is_of_runtime
    if isinstance(error, ReconcileError) and not is_of_runtime:
        return error.reason, error.message
    return constants.REASON_INTERNAL_ERROR, describe_error(error)


def limit_message(message: str) -> str:
    """Return a message that fits into a condition.

    It is shortened, and has neither unsupported characters nor credentials.
    """
    return redact(message).encode(errors="replace").decode()[:_MESSAGE_CHARACTERS]


def describe_other_finalizers(obj: JSON, finalizer: str) -> str:
    """Return why a deleted object stays without ``finalizer``, or an empty string if it does not.

    Other controllers remove the finalizers that are left.
    """
    others = [name for name in metadata.finalizers(obj) if name != finalizer]
    if not others:
        return ""
    text = f"everything is deleted; finalizers of others keep the object: {', '.join(others)}"
    return limit_message(text)


def has_no_failure_fields(obj: JSON) -> bool:
    """Return False, for kinds whose ``failureReason`` core does not read."""
    return False


def has_no_infrastructure(obj: JSON) -> bool:
    """Return False, for kinds whose objects are not replaced if they are not ready."""
    return False


def _find_ready_status(obj: JSON, may_work: bool, condition_type: str) -> bool | None:
    """Return the status of the Ready condition after a reconcile that ended without a state.

    ``condition_type`` is the type of the condition that the object shows instead, if it does.

    Such a reconcile does not tell whether infrastructure that ``may_work`` does so. With False,
    health checks would replace working machines during an outage of the infrastructure's API. A
    condition that is already False stays False, so that their time limits continue to run.
    """
    if metadata.is_deleting(obj) or not may_work:
        return False
    shown = metadata.items(obj, "status", "conditions")
    before = conditions.find(shown, condition_type)
    return False if before is not None and before.get("status") == "False" else None


class StatusReporter:
    """Writes the outcome of one kind's reconciles, without calling the author's code.

    All of a controller's workers share one reporter; its only state is kept separately for each
    object.
    """

    def __init__(
        self,
        kind: Kind[Any],
        context: ControllerContext,
        has_failure_fields: Callable[[JSON], bool] = has_no_failure_fields,
        is_provisioned: Callable[[JSON], bool] = has_no_infrastructure,
        shown_as: str = constants.READY_CONDITION,
    ) -> None:
        """Initialise for one kind.

        ``has_failure_fields`` returns whether core reads an object's terminal failures (v1beta1).
        ``is_provisioned`` returns whether an object's infrastructure exists, as far as is known.
        ``shown_as`` is the type of the condition as which the kind's patcher writes Ready.
        """
        self._kind = kind
        self._context = context
        self._has_failure_fields = has_failure_fields
        self._is_provisioned = is_provisioned
        self._shown_as = shown_as
        self._debounce = StatusDebounce(context.debounce_seconds)

    def forget(self, key: NamespacedName) -> None:
        """Drop the recorded state of an object that no longer exists or no longer waits."""
        self._debounce.forget(key)

    async def ensure_paused_condition(self, patcher: Patcher, cluster: Cluster | None) -> bool:
        """Return whether the object is paused; write the Paused condition if it changed (ST-08).

        An object that was never paused gets the condition with its next status, without an
        additional request.
        """
        message = pause_message(patcher.obj, self._kind.resource.kind, cluster)
        # A resumed object loses its True condition here even if the reconcile then ends without a
        # status.
        if message or patcher.shows(constants.PAUSED_CONDITION, status="True"):
            await patcher.write_conditions(paused(message))
        return bool(message)

    async def report_error(self, patcher: Patcher, reason: str, message: str) -> None:
        """Report an error in the Ready condition and as an event.

        The condition becomes Unknown if the infrastructure exists and was not known to be broken.
        Raises ApiError if the write fails: no retry would report the error again.
        """
        message = limit_message(message)
        self._context.events.warn(patcher.obj, reason, message)
        status = self._find_ready_status(patcher.obj, self._may_work(patcher.obj))
        await patcher.write_conditions(ready(status, reason, message, "Error"), paused(""))

    async def report_retried_error(self, patcher: Patcher, reason: str, message: str) -> None:
        """Report an error that the caller raises, so that a retry reports it again.

        A failed write is only logged, because it must not replace the error.
        """
        try:
            await self.report_error(patcher, reason, message)
        except ApiError as error:
            logger = create_object_logger(self._kind, key_of(patcher.obj))
            logger.warning("cannot write conditions", error=str(error))

    async def report_failure(self, patcher: Patcher, error: Exception) -> None:
        """Report an exception from the author's code; the caller must raise it again."""
        if isinstance(error, TerminalError):
            await self._report_terminal_failure(patcher, error)
        else:
            await self.report_retried_error(patcher, *describe_failure(error))

    async def refuse(self, patcher: Patcher, reason: str, message: str) -> NoReturn:
        """Report a result that the contract forbids, and raise ContractError.

        The result comes from the author's code.
        """
        error = ContractError(reason, message)
        await self.report_failure(patcher, error)
        raise error

    async def report_wait(
        self, patcher: Patcher, waiting: Waiting, status: JSON | None = None
    ) -> Result:
        """Return when to reconcile again; write the reason once the object has waited long enough.

        The Ready condition becomes Unknown if the infrastructure exists and was not known to be
        broken, and False otherwise.

        ``status`` is the object's status with the partial results in ``waiting``. If it is None,
        the kind supports no partial results except the author's status fields; others raise
        ContractError.
        """
        if status is None:
            await self.check_partial_results(patcher, waiting, frozenset())
            # The author's status may hold the id of a running operation, which the next call needs.
            status = self.author_status(patcher, waiting.status)
        is_provisioned = self._is_provisioned(patcher.obj)
        return await self._write_wait(patcher, waiting, status, is_provisioned)

    async def report_blocker(self, patcher: Patcher, blocker: Waiting) -> Result:
        """Report as :meth:`report_wait` does what the author's code cannot be called without."""
        status = dict(metadata.mapping(patcher.obj, "status"))
        return await self._write_wait(patcher, blocker, status, self._may_work(patcher.obj))

    async def _write_wait(
        self, patcher: Patcher, waiting: Waiting, status: JSON, may_work: bool
    ) -> Result:
        left = self._debounce.left(key_of(patcher.obj), waiting.reason)
        requeue_after = waiting.requeue_after
        # New partial results are not delayed: after a crash they could not be found again.
        if left > 0 and status == metadata.mapping(patcher.obj, "status"):
            return Result(left if requeue_after is None else min(left, requeue_after))
        is_ready = self._find_ready_status(patcher.obj, may_work)
        await patcher.write_status(
            status, (ready(is_ready, waiting.reason, waiting.message, "Info"), paused(""))
        )
        return Result(requeue_after)

    def _find_ready_status(self, obj: JSON, may_work: bool) -> bool | None:
        return _find_ready_status(obj, may_work, self._shown_as)

    def _may_work(self, obj: JSON) -> bool:
        # After `clusterctl move`, a machine's status is empty, but its provider id is in the spec.
        return self._is_provisioned(obj) or bool(metadata.text(obj, "spec", "providerID"))

    async def check_partial_results(
        self, patcher: Patcher, waiting: Waiting, possible: Set[str]
    ) -> None:
        """Raise ContractError for partial results that objects of this kind cannot have.

        ``possible`` names the fields that they can have.
        """
        present = {name for name in _PARTIAL_RESULTS if getattr(waiting, name) is not None}
        if not present <= possible:
            names = " and ".join(sorted(present - possible))
            message = f"a {self._kind.resource.kind} has no {names} while it waits"
            await self.refuse(patcher, constants.REASON_INVALID_RESULT, message)

    async def remove_finalizer(self, patcher: Patcher) -> None:
        """Remove the kind's finalizer from an object whose infrastructure is deleted (SM-08).

        If finalizers of other controllers keep the object, its Ready condition becomes False first.
        """
        if kept := describe_other_finalizers(patcher.obj, self._kind.finalizer):
            condition = ready(False, constants.REASON_DELETING, kept, "Info")
            await self.write_last_status(patcher.obj, patcher.write_conditions(condition))
        await patcher.remove_finalizer(self._kind.finalizer)

    async def write_last_status(self, obj: JSON, write: Awaitable[None]) -> None:
        """Await the write of a status after which the finalizer is removed."""
        try:
            await write
        # A rule of the CRD that forbids the status must not keep the object forever.
        except InvalidRequestError as error:
            logger = create_object_logger(self._kind, key_of(obj))
            logger.warning("cannot write conditions", error=str(error))

    @staticmethod
    def author_status(patcher: Patcher, fields: object) -> JSON:
        """Return a copy of the object's status with the author's status fields set."""
        return set_extra_fields(
            dict(metadata.mapping(patcher.obj, "status")), encode_status(fields)
        )

    async def report_state(self, patcher: Patcher, status: JSON, state: State) -> Result:
        """Write the status of a provisioned object, with the conditions in ``state``."""
        default_reason = constants.REASON_READY if state.ready else constants.REASON_NOT_READY
        wanted: Sequence[Condition] = (
            ready(state.ready, state.reason or default_reason, state.message),
            paused(""),
            *state.conditions,
        )
        # The record always covers the author's conditions: after a crash between two writes, the
        # next reconcile still knows which conditions it may remove.
        types = {condition.type for condition in state.conditions}
        await patcher.record_conditions(patcher.recorded_conditions | types)
        patcher.drop_conditions(patcher.recorded_conditions - types)
        await patcher.write_status(self._context.writer.remove_failure(status), wanted)
        await patcher.record_conditions(types)
        self._debounce.forget(key_of(patcher.obj))
        return Result(state.requeue_after)

    async def _report_terminal_failure(self, patcher: Patcher, error: TerminalError) -> None:
        """Report a terminal failure; a provisioned object stays provisioned (IC-05, IM-03)."""
        message = limit_message(error.message)
        self._context.events.warn(patcher.obj, error.reason, message)
        status = self.author_status(patcher, error.status)
        if self._has_failure_fields(patcher.obj) and not metadata.is_deleting(patcher.obj):
            status = self._context.writer.add_failure(status, error.reason, message)
        # Unlike a retried error this one is not reported again soon: a failed write is raised.
        await patcher.write_status(
            status, (ready(False, error.reason, message, "Error"), paused(""))
        )
