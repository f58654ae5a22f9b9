"""Errors of requests that authors send with the client of a scope."""

from __future__ import annotations

from typing import ClassVar, Final

from capsmith_runtime.kube.client import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
)
from capsmith_runtime.reconcile.errors import ReconcileError


class KubernetesError(ReconcileError):
    """A request to the Kubernetes API failed; let it pass, to report it and to retry the call."""

    default_reason: ClassVar[str] = "KubernetesRequestFailed"
    """The reason of the Ready condition."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        """``retry_after`` is the delay in seconds that the API server requested."""
        super().__init__(self.default_reason, message, retry_after=retry_after)


class NotDeclaredError(KubernetesError):
    """provider.yaml declares no permission for the request; the message names the missing rule."""

    default_reason = "PermissionNotDeclared"


class ForbiddenError(KubernetesError):
    """The API server refused the request (403): a role lacks a rule, or an admission policy."""

    default_reason = "KubernetesRequestForbidden"


class NotFoundError(KubernetesError):
    """The object to change, or the kind, does not exist (404)."""

    default_reason = "KubernetesObjectNotFound"


class ConflictError(KubernetesError):
    """The object has changed since it was read, or another manager owns a field (409)."""

    default_reason = "KubernetesConflict"


class AlreadyExistsError(ConflictError):
    """The object to create exists, or the one to apply is another's (409)."""

    default_reason = "KubernetesAlreadyExists"


class InvalidRequestError(KubernetesError):
    """The object is invalid (422), or a name that no object can have."""

    default_reason = "KubernetesRequestInvalid"


class CallEndedError(Exception):
    """The call of the reconciler has ended, e.g. by its time-out: its client sends nothing."""


_ERRORS: Final = (
    (AlreadyExists, AlreadyExistsError),
    (Conflict, ConflictError),
    (Forbidden, ForbiddenError),
    (NotFound, NotFoundError),
    (Invalid, InvalidRequestError),
    (ApiError, KubernetesError),
)


def kubernetes_error(request: str, error: ApiError) -> KubernetesError:
    """Return the error for authors; ``request`` says what was requested."""
    found = next(theirs for ours, theirs in _ERRORS if isinstance(error, ours))
    return found(f"{request}: {error}", retry_after=error.retry_after)
