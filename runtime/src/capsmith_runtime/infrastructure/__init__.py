"""Infrastructure providers: clusters, machines, machine pools, identities.

The names below are all that the author of a provider needs; everything else in this package is
internal.  Importing them loads no Kubernetes client.
"""

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.contract.metadata import label_value
from capsmith_runtime.contract.model import Address, AddressType, Condition, Endpoint, FailureDomain
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
from capsmith_runtime.infrastructure.api import (
    ClaimedAddress,
    InfraClusterDeleteScope,
    InfraClusterReconciler,
    InfraClusterScope,
    InfraClusterState,
    InfraClusterView,
    InfraMachineDeleteScope,
    InfraMachineReconciler,
    InfraMachineScope,
    InfraMachineState,
    InfraMachineTemplateScope,
    InfraMachineView,
    MachineCapacity,
    WatchedMachines,
)
from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolDeleteScope,
    InfraMachinePoolReconciler,
    InfraMachinePoolScope,
    InfraMachinePoolState,
    Instance,
    MachinePoolMachinesReconciler,
)
from capsmith_runtime.reconcile.events import Events
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient
from capsmith_runtime.reconcile.results import Deleted, NotAvailableError, Terminated, Waiting
from capsmith_runtime.reconcile.scopes import BootstrapData
from capsmith_runtime.reconcile.sessions import Changes, Credentials, ReportedChange, SessionFactory

__all__ = [
    "Address",
    "AddressType",
    "AlreadyExistsError",
    "BootstrapData",
    "CallEndedError",
    "Changes",
    "ClaimedAddress",
    "Cluster",
    "Condition",
    "ConflictError",
    "Credentials",
    "DecodingError",
    "Deleted",
    "Endpoint",
    "Events",
    "FailureDomain",
    "ForbiddenError",
    "InfraClusterDeleteScope",
    "InfraClusterReconciler",
    "InfraClusterScope",
    "InfraClusterState",
    "InfraClusterView",
    "InfraMachineDeleteScope",
    "InfraMachinePoolDeleteScope",
    "InfraMachinePoolReconciler",
    "InfraMachinePoolScope",
    "InfraMachinePoolState",
    "InfraMachineReconciler",
    "InfraMachineScope",
    "InfraMachineState",
    "InfraMachineTemplateScope",
    "InfraMachineView",
    "Instance",
    "InvalidRequestError",
    "KubernetesClient",
    "KubernetesError",
    "Machine",
    "MachineCapacity",
    "MachinePool",
    "MachinePoolMachinesReconciler",
    "NotAvailableError",
    "NotDeclaredError",
    "NotFoundError",
    "RateLimitedError",
    "ReconcileError",
    "ReportedChange",
    "SessionExpiredError",
    "SessionFactory",
    "TerminalError",
    "Terminated",
    "Waiting",
    "WatchedMachines",
    "label_value",
]
