"""Errors that authors raise, with a reason for the Ready condition."""

from __future__ import annotations

import math
from typing import Any, Final

from capsmith_runtime.contract.constants import REASON_INTERNAL_ERROR
from capsmith_runtime.contract.model import check_reason
from capsmith_runtime.kube.log import describe_error
from capsmith_runtime.kube.requeue import RetryAfterError

_MESSAGE_CHARACTERS: Final = 4096
"""The CRD allows 32,768 (ST-01); that is too long to read."""


class ReconcileError(RetryAfterError):
    """An error with a reason: Ready is False with it, and the call is retried with back-off."""

    reason: str
    """Reason of the Ready condition in CamelCase."""
    message: str
    """Message of the Ready condition."""
    retry_after: float | None
    """Minimum delay in seconds until the next call of the method; None for the back-off."""

    def __init__(self, reason: str, message: str = "", *, retry_after: float | None = None) -> None:
        """``reason`` is CamelCase; ``retry_after`` is the minimum delay in seconds.

        Events do not shorten it, but another method may be called, such as that of a deletion.
        """
        super().__init__(f"{reason}: {message}" if message else reason)
        check_reason(reason)
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class RateLimitedError(ReconcileError):
    """The infrastructure refuses further requests of this identity for a while.

    No method is called for any object of the identity until ``retry_after`` seconds have passed:
    neither an event nor a deletion shortens that.
    """

    retry_after: float
    """Seconds without any call for the identity."""

    def __init__(
        self, message: str = "", *, retry_after: float, reason: str = "RateLimited"
    ) -> None:
        """``retry_after`` is in seconds.  Raises ValueError if it is negative or not finite."""
        if not 0 <= retry_after < math.inf:
            raise ValueError(f"retry_after is {retry_after}")
        super().__init__(reason, message, retry_after=retry_after)


class SessionError(ReconcileError):
    """The session of an identity could not be opened; it is opened again with back-off."""


class ContractError(ReconcileError):
    """The author's code returned a value that the contract forbids."""


class TerminalError(ReconcileError):
    """An error that no retry resolves: only a change of the object, or its replacement.

    The call is repeated after a change and at the sync period, without back-off.  In contract
    v1beta1 it becomes ``failureReason`` and ``failureMessage`` (IC-12, IM-11, BC-10, CP-27).
    """

    status: Any
    """Instance of the generated Status class, to write with the error; None keeps the status."""

    def __init__(self, reason: str, message: str = "", *, status: Any = None) -> None:
        """``status`` is an instance of the generated Status class, to write with the error."""
        super().__init__(reason, message)
        self.status = status


def reason_and_message(error: Exception) -> tuple[str, str]:
    """Return what the Ready condition reports about an exception."""
    if isinstance(error, ReconcileError):
        return error.reason, error.message
    return REASON_INTERNAL_ERROR, describe_error(error)


def limited_message(message: str) -> str:
    """Return a message that a condition can hold, whatever characters an SDK put into it."""
    return message.encode(errors="replace").decode()[:_MESSAGE_CHARACTERS]
