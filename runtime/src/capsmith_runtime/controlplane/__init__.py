"""Control plane providers.

``ControlPlaneReconciler`` is the base class for control planes that consist of Machines, and
``ManagedControlPlaneReconciler`` for those that a service runs.  The names below are all that the
author of a provider needs; everything else in this package is internal.  Importing them loads no
Kubernetes client.
"""

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.contract.control_plane import ControlPlaneMachine
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Condition, Endpoint
from capsmith_runtime.controlplane.api import (
    ControlPlaneHealth,
    ControlPlaneMember,
    ControlPlaneReconciler,
    ControlPlaneScope,
)
from capsmith_runtime.controlplane.managed.api import (
    ClusterCredentials,
    ManagedControlPlaneDeleteScope,
    ManagedControlPlaneReconciler,
    ManagedControlPlaneScope,
    ManagedControlPlaneState,
)
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
from capsmith_runtime.kube.client import KubeClient, NamespacedName, ResourceType
from capsmith_runtime.reconcile.events import Events
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient
from capsmith_runtime.reconcile.results import Deleted, NotAvailableError, Waiting
from capsmith_runtime.reconcile.sessions import Credentials, SessionFactory

__all__ = [
    "AlreadyExistsError",
    "ApiError",
    "CallEndedError",
    "Cluster",
    "ClusterCredentials",
    "Condition",
    "ConflictError",
    "ControlPlaneHealth",
    "ControlPlaneMachine",
    "ControlPlaneMember",
    "ControlPlaneReconciler",
    "ControlPlaneScope",
    "Credentials",
    "DecodingError",
    "Deleted",
    "Endpoint",
    "Events",
    "ForbiddenError",
    "InvalidRequestError",
    "KubeClient",
    "KubernetesClient",
    "KubernetesError",
    "ManagedControlPlaneDeleteScope",
    "ManagedControlPlaneReconciler",
    "ManagedControlPlaneScope",
    "ManagedControlPlaneState",
    "NamespacedName",
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
]
