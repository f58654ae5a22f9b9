"""Add-on providers, which install software into workload clusters."""

from capsmith_runtime.addon.api import (
    AddonDeleteScope,
    AddonReconciler,
    AddonScope,
    AddonState,
    ResourceType,
    Workload,
)
from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.errors import (
    AlreadyExistsError,
    ApiError,
    CallEndedError,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    KubernetesError,
    NotDeclaredError,
    NotFoundError,
    RateLimitedError,
    ReconcileError,
    SessionExpiredError,
    TerminalError,
)
from capsmith_runtime.reconcile.events import Events
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient
from capsmith_runtime.reconcile.results import Deleted, NotAvailableError, Waiting
from capsmith_runtime.reconcile.sessions import Credentials, SessionFactory

__all__ = [
    "AddonDeleteScope",
    "AddonReconciler",
    "AddonScope",
    "AddonState",
    "AlreadyExistsError",
    "ApiError",
    "CallEndedError",
    "Cluster",
    "ConflictError",
    "Credentials",
    "DecodingError",
    "Deleted",
    "Events",
    "ForbiddenError",
    "InvalidRequestError",
    "KubernetesClient",
    "KubernetesError",
    "NotAvailableError",
    "NotDeclaredError",
    "NotFoundError",
    "RateLimitedError",
    "ReconcileError",
    "ResourceType",
    "SessionExpiredError",
    "SessionFactory",
    "TerminalError",
    "Waiting",
    "Workload",
]
