"""All errors of the runtime, in one tree.

    RetryAfterError               expected: logged without a traceback, and retried with back-off
    └── ReconcileError            has a reason and a message for the Ready condition
        ├── ContractError         the author's code returned what the contract forbids
        ├── RateLimitedError      the infrastructure limits an identity's requests
        ├── SessionError          an identity's session could not be opened
        ├── SessionExpiredError   the infrastructure has ended an identity's session
        ├── TerminalError         only changing or replacing the object helps
        └── KubernetesError       a request to a Kubernetes API failed
            ├── NotDeclaredError          not sent: provider.yaml declares no permission
            └── ApiError                  rejected by the API server, or without a response
                ├── UnreachableError          no response
                ├── UnauthorizedError         401
                ├── ForbiddenError            403
                ├── NotFoundError             404
                ├── ConflictError             409
                │   └── AlreadyExistsError    409 on creation
                ├── ResourceExpiredError      410
                ├── InvalidRequestError       422
                ├── TooManyRequestsError      429
                └── ServerError               500 and above

Requests by the runtime and by the author's code raise the same classes; ``ApiError.is_of_runtime``
tells them apart.  Three more end a call but are not failures: ``kube.requeue.DeferredError`` (not
yet), ``reconcile.results.NotAvailableError`` (handled like a returned Waiting), and
:class:`CallEndedError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

MAX_RETRY_AFTER: Final = 300.0
"""Maximum pause in seconds for a rate-limited identity, the same as for the API server."""

_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")


class RetryAfterError(Exception):
    """An expected error: it is logged without a traceback, and retried with back-off."""

    retry_after: float | None = None
    """Minimum seconds until the next attempt, or None to use the queue's back-off."""


class ReconcileError(RetryAfterError):
    """An error whose reason is shown in the Ready condition; the call is retried with back-off."""

    reason: str
    """Reason of the Ready condition in CamelCase."""
    message: str
    """Message of the Ready condition."""
    retry_after: float | None
    """Minimum seconds until the next call of the method, or None to use the back-off."""

    def __init__(self, reason: str, message: str = "", *, retry_after: float | None = None) -> None:
        """Create the error; ``retry_after`` is the minimum delay in seconds.

        ``reason`` is in CamelCase. Events do not shorten the delay, but another method may be
        called, such as ``reconcile_delete``.
        """
        super().__init__(f"{reason}: {message}" if message else reason)
        check_reason(reason)
        self.reason = reason
        self.message = message
        # A delay without end, which a header of the infrastructure may request, is ignored.
        is_finite = retry_after is not None and -math.inf < retry_after < math.inf
        self.retry_after = retry_after if is_finite else None


class RateLimitedError(ReconcileError):
    """Raise this if the infrastructure temporarily rejects requests from an identity.

    No method is called for any of the identity's objects until ``retry_after`` seconds have passed;
    neither events nor deletions shorten the delay.  The delay is at most ``MAX_RETRY_AFTER``, after
    which the infrastructure is tried again.
    """

    retry_after: float
    """Seconds during which no method is called for the identity."""

    def __init__(
        self, message: str = "", *, retry_after: float, reason: str = "RateLimited"
    ) -> None:
        """Create the error; ``retry_after`` is the delay in seconds.

        Raises ValueError if the delay is negative or not finite.
        """
        if not 0 <= retry_after < math.inf:
            raise ValueError(f"retry_after is {retry_after}")
        super().__init__(reason, message, retry_after=min(retry_after, MAX_RETRY_AFTER))


class SessionError(ReconcileError):
    """Raised if an identity's session could not be opened; retried with back-off."""


class SessionExpiredError(ReconcileError):
    """Raise this if the infrastructure has ended the session that the call uses.

    The runtime closes the session after the last call that uses it, opens a new one, and repeats
    the call; the conditions stay as they are. If the infrastructure ends a session within a minute
    of its opening, the conditions report the error, and the next session is opened after a
    back-off. For a reconciler without a session factory, it is an error like any other.
    """

    def __init__(self, message: str = "", *, reason: str = "SessionExpired") -> None:
        """Create the error; the Ready condition shows ``reason`` and ``message``."""
        super().__init__(reason, message or "the infrastructure has ended the session")


class ContractError(ReconcileError):
    """Raised if the author's code returned a value that the Cluster API contract forbids."""


class TerminalError(ReconcileError):
    """Raise this for an error that only a change to the object, or its replacement, can resolve.

    The call is retried after a change and at the sync period, without back-off.  In contract
    v1beta1 the error is written as ``failureReason`` and ``failureMessage`` (IC-12, IM-11, BC-10,
    CP-27).
    """

    status: Any
    """Instance of the generated Status class to write with the error, or None to write none."""

    def __init__(self, reason: str, message: str = "", *, status: Any = None) -> None:
        """Create the error; ``status`` is an instance of the generated Status class."""
        super().__init__(reason, message)
        self.status = status


class KubernetesError(ReconcileError):
    """Raised if a request to the Kubernetes API failed.

    If your code does not catch it, the runtime reports it and retries the call.
    """

    default_reason: ClassVar[str] = "KubernetesRequestFailed"
    """Reason of the Ready condition for errors of this class."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        """Create the error; ``retry_after`` is the delay that the API server requested."""
        super().__init__(self.default_reason, message, retry_after=retry_after)


class NotDeclaredError(KubernetesError):
    """Raised if provider.yaml declares no permission for the request.

    The message names the missing rule.
    """

    default_reason = "PermissionNotDeclared"


class ApiError(KubernetesError):
    """Raised if the API server rejected a request or did not respond."""

    status: int = 0
    """HTTP status code, or 0 if there was no response."""
    api_reason: str
    """Reason from the API server, such as `Conflict`, or an empty string if unknown."""
    is_of_runtime: bool
    """Whether the runtime, rather than the author's code, sent the request."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        api_reason: str = "",
        retry_after: float | None = None,
        is_of_runtime: bool = False,
    ) -> None:
        """Create the error; ``message`` comes from the API server or the connection.

        If ``status`` is None, the HTTP status code of the class is used.
        """
        super().__init__(message, retry_after=retry_after)
        if status is not None:
            self.status = status
        self.api_reason = api_reason
        self.is_of_runtime = is_of_runtime

    def __str__(self) -> str:
        """Return the message for logs; requests by the runtime also show the HTTP status."""
        if self.is_of_runtime:
            return f"{self.status or 'no answer'} {self.api_reason}: {self.message}"
        return super().__str__()

    def for_request(self, request: str) -> Self:
        """Return a copy for the author's code whose message also describes the request."""
        return type(self)(
            f"{request}: {self}",
            status=self.status,
            api_reason=self.api_reason,
            retry_after=self.retry_after,
        )


class UnreachableError(ApiError):
    """Raised if the API server gave no usable response: refused, reset, timed out, or not HTTP."""


class UnauthorizedError(ApiError):
    """Raised if the API server rejected the credentials (401), even after they were reloaded."""

    status = 401


class ForbiddenError(ApiError):
    """Raised if no role allows the request, or an admission policy rejected it (403)."""

    default_reason = "KubernetesRequestForbidden"
    status = 403


class NotFoundError(ApiError):
    """Raised if the object to read or change does not exist, or its kind is not served (404)."""

    default_reason = "KubernetesObjectNotFound"
    status = 404


class ConflictError(ApiError):
    """Raised if the object has changed since it was read, or another manager owns a field (409)."""

    default_reason = "KubernetesConflict"
    status = 409


class AlreadyExistsError(ConflictError):
    """Raised if the object to create exists, or the object to apply has another owner (409)."""

    default_reason = "KubernetesAlreadyExists"


class ResourceExpiredError(ApiError):
    """Raised if the resource version or page token is too old (410); list again."""

    status = 410


class InvalidRequestError(ApiError):
    """Raised if the object is invalid (422), or if its name is not valid for any object."""

    default_reason = "KubernetesRequestInvalid"
    status = 422


class TooManyRequestsError(ApiError):
    """Raised if the API server is overloaded (429); ``retry_after`` may contain the delay."""

    status = 429


class ServerError(ApiError):
    """Raised if the API server responds with status 500 or above."""

    status = 500


class CallEndedError(Exception):
    """Raised for a request that is made after the reconciler's call has ended or timed out.

    The request is not sent.
    """


_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    0: UnreachableError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ResourceExpiredError,
    422: InvalidRequestError,
    429: TooManyRequestsError,
}
_BY_REASON: Final[Mapping[str, type[ApiError]]] = {
    "AlreadyExists": AlreadyExistsError,
    # A watch ends with this reason, but not always with 410.
    "Expired": ResourceExpiredError,
}


def create_api_error(
    status: int, reason: str, message: str, retry_after: float | None = None
) -> ApiError:
    """Return an error whose class matches ``status``, for a request by the runtime.

    ``status`` is 0 if there was no response. The author's code gets the error through
    :meth:`ApiError.for_request`.
    """
    default = ServerError if status >= 500 else ApiError
    # The reason first: AlreadyExists and Conflict have the same status.
    found = _BY_REASON.get(reason) or _BY_STATUS.get(status, default)
    return found(
        message, status=status, api_reason=reason, retry_after=retry_after, is_of_runtime=True
    )


_FORMER_NAMES: Final[Mapping[type[ApiError], str]] = {
    UnreachableError: "Unreachable",
    UnauthorizedError: "Unauthorized",
    ForbiddenError: "Forbidden",
    NotFoundError: "NotFound",
    ConflictError: "Conflict",
    AlreadyExistsError: "AlreadyExists",
    ResourceExpiredError: "ResourceExpired",
    InvalidRequestError: "Invalid",
    TooManyRequestsError: "TooManyRequests",
}


def error_label(error: BaseException) -> str:
    """Return the name of an error's class for use as a metric label.

    Errors from the runtime's requests keep the names that the alerts and dashboards of released
    providers use, such as ``Conflict``.
    """
    name = type(error).__name__
    if isinstance(error, ApiError) and error.is_of_runtime:
        return _FORMER_NAMES.get(type(error), name)
    return name


def check_reason(reason: str) -> None:
    """Raise ValueError if the API server would reject ``reason``."""
    if not _REASON.fullmatch(reason):
        raise ValueError(f"a reason must be one CamelCase word, not {reason!r}")
