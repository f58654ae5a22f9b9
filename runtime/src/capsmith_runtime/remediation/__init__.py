"""Kinds that remediate Machines on behalf of a MachineHealthCheck.

The names below are all that the author of a provider needs; everything else in this package is
internal.  Importing them loads no Kubernetes client.
"""

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.model import Condition
from capsmith_runtime.errors import (
    AlreadyExistsError,
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
from capsmith_runtime.remediation.api import (
    RemediationDeleteScope,
    RemediationFailed,
    RemediationReconciler,
    RemediationScope,
    RemediationState,
)

__all__ = [
    "AlreadyExistsError",
    "CallEndedError",
    "Cluster",
    "Condition",
    "ConflictError",
    "Credentials",
    "DecodingError",
    "Deleted",
    "Events",
    "ForbiddenError",
    "InvalidRequestError",
    "KubernetesClient",
    "KubernetesError",
    "Machine",
    "NotAvailableError",
    "NotDeclaredError",
    "NotFoundError",
    "RateLimitedError",
    "ReconcileError",
    "RemediationDeleteScope",
    "RemediationFailed",
    "RemediationReconciler",
    "RemediationScope",
    "RemediationState",
    "SessionExpiredError",
    "SessionFactory",
    "TerminalError",
    "Waiting",
]
