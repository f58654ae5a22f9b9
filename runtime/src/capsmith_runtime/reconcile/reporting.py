"""Writes the outcome of a reconcile: failures, waits and states, in the status and as events."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final, Generic, TypeVar

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.model import Condition
from capsmith_runtime.contract.status_writer import set_extra_fields
from capsmith_runtime.errors import ApiError, ContractError, TerminalError
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.log import Logger, get_logger
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.debounce import StatusDebounce
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import Patcher, paused, ready
from capsmith_runtime.reconcile.results import State, Waiting
from capsmith_runtime.reconcile.status_reporter import limited_message, reason_and_message

R = TypeVar("R")

_PARTIAL_RESULTS: Final = (
    "addresses",
    "control_plane_endpoint",
    "failure_domains",
    "provider_id",
)
"""Fields of Waiting that only some kinds have."""


class ReportingController(Generic[R]):
    """The part of a controller that reports to users and to core; it calls no author code."""

    def __init__(self, kind: Kind[R], context: ControllerContext) -> None:
        self.kind = kind
        self._context = context
        self._debounce = StatusDebounce(context.debounce_seconds)

    def _logger(self, key: NamespacedName) -> Logger:
        return get_logger("author", kind=self.kind.resource.kind, object=str(key))

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
        status = set_extra_fields(status, encode_status(error.status))
        if self._has_failure_fields(patcher.obj) and not metadata.is_deleting(patcher.obj):
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
            self._logger(key_of(patcher.obj)).warning("cannot write conditions", error=str(error))

    async def _wait(self, patcher: Patcher, waiting: Waiting) -> Result:
        """Return when to reconcile again; write the reason once the wait lasts long enough."""
        status = await self._partial_status(patcher, waiting)
        left = self._debounce.left(key_of(patcher.obj), waiting.reason)
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
        await self._check_partial_results(patcher, waiting, frozenset())
        status = dict(metadata.mapping(patcher.obj, "status"))
        return set_extra_fields(status, encode_status(waiting.status))

    async def _check_partial_results(
        self, patcher: Patcher, waiting: Waiting, possible: Set[str]
    ) -> None:
        """Refuse partial results that objects of this kind do not have."""
        given = {name for name in _PARTIAL_RESULTS if getattr(waiting, name) is not None}
        if not given <= possible:
            names = " and ".join(sorted(given - possible))
            message = f"a {self.kind.resource.kind} has no {names} while it waits"
            error = ContractError(constants.REASON_INVALID_RESULT, message)
            await self._failed(patcher, error)
            raise error

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
        self._debounce.forget(key_of(patcher.obj))
        return Result(state.requeue_after)
