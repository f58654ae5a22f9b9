"""Infrastructure providers: clusters, machines, machine pools, identities.

The names below are all that the author of a provider needs; everything else in this package is
internal.  Importing them loads no Kubernetes client.
"""

from capsmith_runtime.api.decoding import DecodingError
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.label_value import label_value
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.contract.model import Address, AddressType, Condition, Endpoint, FailureDomain
from capsmith_runtime.infrastructure.machine_pool.api import (
    InfraMachinePoolDeleteScope,
    InfraMachinePoolReconciler,
    InfraMachinePoolScope,
    InfraMachinePoolState,
    Instance,
    MachinePoolMachinesReconciler,
)
from capsmith_runtime.infrastructure.reconcilers import (
    InfraClusterReconciler,
    InfraMachineReconciler,
)
from capsmith_runtime.infrastructure.results import (
    InfraClusterState,
    InfraMachineState,
    MachineCapacity,
)
from capsmith_runtime.infrastructure.scopes import (
    ClaimedAddress,
    InfraClusterDeleteScope,
    InfraClusterScope,
    InfraClusterView,
    InfraMachineDeleteScope,
    InfraMachineScope,
)
from capsmith_runtime.reconcile.credentials import Credentials
from capsmith_runtime.reconcile.errors import RateLimitedError, ReconcileError, TerminalError
from capsmith_runtime.reconcile.events import Events
from capsmith_runtime.reconcile.results import Deleted, NotAvailableError, Terminated, Waiting
from capsmith_runtime.reconcile.scopes import BootstrapData
from capsmith_runtime.reconcile.sessions import SessionFactory

__all__ = [
    "Address",
    "AddressType",
    "BootstrapData",
    "ClaimedAddress",
    "Cluster",
    "Condition",
    "Credentials",
    "DecodingError",
    "Deleted",
    "Endpoint",
    "Events",
    "FailureDomain",
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
    "Instance",
    "Machine",
    "MachineCapacity",
    "MachinePool",
    "MachinePoolMachinesReconciler",
    "NotAvailableError",
    "RateLimitedError",
    "ReconcileError",
    "SessionFactory",
    "TerminalError",
    "Terminated",
    "Waiting",
    "label_value",
]
