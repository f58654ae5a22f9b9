"""Kinds that the contract does not define, such as networks, images and security groups.

The names below are all that the author of a provider needs; everything else in this package is
internal.  Importing them loads no Kubernetes client.
"""

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.contract.core import Cluster
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
from capsmith_runtime.reconcile.objects import CustomObject
from capsmith_runtime.reconcile.results import Deleted, NotAvailableError, Waiting
from capsmith_runtime.reconcile.sessions import Credentials, SessionFactory
from capsmith_runtime.resource.api import (
    Owner,
    ResourceDeleteScope,
    ResourceReconciler,
    ResourceScope,
    ResourceState,
)

__all__ = [
    "AlreadyExistsError",
    "CallEndedError",
    "Cluster",
    "Condition",
    "ConflictError",
    "Credentials",
    "CustomObject",
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
    "Owner",
    "RateLimitedError",
    "ReconcileError",
    "ResourceDeleteScope",
    "ResourceReconciler",
    "ResourceScope",
    "ResourceState",
    "SessionExpiredError",
    "SessionFactory",
    "TerminalError",
    "Waiting",
]
