"""Bootstrap providers, which generate the data that machines run on first boot."""

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.bootstrap import sentinel
from capsmith_runtime.bootstrap.api import (
    BootstrapConfigReconciler,
    BootstrapConfigScope,
    BootstrapDocument,
    CertificatePair,
    CertificatePurpose,
)
from capsmith_runtime.bootstrap.cloud_config import cloud_config, write_file
from capsmith_runtime.bootstrap.sentinel import (
    LINUX_SENTINEL,
    WINDOWS_SENTINEL,
    powershell_script,
    run_command,
    shell_script,
)
from capsmith_runtime.contract.bootstrap import Taint
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.contract.model import Endpoint
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
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.scopes import BootstrapData
from capsmith_runtime.reconcile.sessions import Credentials, SessionFactory

__all__ = [
    "LINUX_SENTINEL",
    "WINDOWS_SENTINEL",
    "AlreadyExistsError",
    "BootstrapConfigReconciler",
    "BootstrapConfigScope",
    "BootstrapData",
    "BootstrapDocument",
    "CallEndedError",
    "CertificatePair",
    "CertificatePurpose",
    "Cluster",
    "ConflictError",
    "Credentials",
    "DecodingError",
    "Endpoint",
    "Events",
    "ForbiddenError",
    "InvalidRequestError",
    "KubernetesClient",
    "KubernetesError",
    "Machine",
    "MachinePool",
    "NotAvailableError",
    "NotDeclaredError",
    "NotFoundError",
    "RateLimitedError",
    "ReconcileError",
    "SessionExpiredError",
    "SessionFactory",
    "Taint",
    "TerminalError",
    "Waiting",
    "cloud_config",
    "powershell_script",
    "run_command",
    "sentinel",
    "shell_script",
    "write_file",
]
