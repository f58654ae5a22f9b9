"""IPAM providers, which serve IPAddressClaims from pools and never allocate an address twice.

An address is in use while an IPAddress in the cache has it, and while it is reserved. Before an
IPAddress is created, its address is written into the pool's status, together with the allocating
manager's identity and on condition that the pool's resource version has not changed. A manager that
finds another identity there writes its own, and lists all IPAddresses from the API server before it
allocates. If two managers both believe they are the leader, the writes of at most one succeed, and
that manager knows every address that the other has allocated.
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
from capsmith_runtime.ipam.address_ranges import Address, AddressRanges, InvalidRangesError
from capsmith_runtime.ipam.api import (
    AddressClaim,
    AddressRelease,
    Allocation,
    ExternalPoolReconciler,
    Pool,
    PoolReconciler,
    PoolState,
    RangePoolReconciler,
    exhausted,
)
from capsmith_runtime.reconcile.events import Events
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient
from capsmith_runtime.reconcile.results import Deleted, NotAvailableError, Waiting
from capsmith_runtime.reconcile.sessions import Credentials, SessionFactory

__all__ = [
    "Address",
    "AddressClaim",
    "AddressRanges",
    "AddressRelease",
    "Allocation",
    "AlreadyExistsError",
    "CallEndedError",
    "Cluster",
    "Condition",
    "ConflictError",
    "Credentials",
    "DecodingError",
    "Deleted",
    "Events",
    "ExternalPoolReconciler",
    "ForbiddenError",
    "InvalidRangesError",
    "InvalidRequestError",
    "KubernetesClient",
    "KubernetesError",
    "NotAvailableError",
    "NotDeclaredError",
    "NotFoundError",
    "Pool",
    "PoolReconciler",
    "PoolState",
    "RangePoolReconciler",
    "RateLimitedError",
    "ReconcileError",
    "SessionExpiredError",
    "SessionFactory",
    "TerminalError",
    "Waiting",
    "exhausted",
]
