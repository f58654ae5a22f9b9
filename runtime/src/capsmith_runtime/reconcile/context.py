"""Dependencies shared by all of a manager's controllers."""

from __future__ import annotations

from dataclasses import dataclass, field

from capsmith_runtime.contract.status_writer import StatusWriter
from capsmith_runtime.kube.client import KubeClient
from capsmith_runtime.kube.events import EventRecorder
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.options import Options
from capsmith_runtime.reconcile.permissions import Permissions
from capsmith_runtime.reconcile.session_pools import SessionPools


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerContext:
    """Dependencies shared by all of a manager's controllers."""

    client: KubeClient
    label: str
    """The provider's manifest label, such as ``infrastructure-acme``."""
    contract: str
    """The contract version in which spec and status are written."""
    executor: HandlerExecutor
    sessions: SessionPools
    events: EventRecorder
    writer: StatusWriter
    sync_seconds: float = 600.0
    """Seconds between reconciles if no event arrives, with jitter; 0 disables such reconciles."""
    debounce_seconds: float = 2.0
    """Seconds that a wait must last before its reason is written into the status."""
    options: Options = field(default_factory=Options)
    """The manager's command line options."""
    permissions: Permissions = field(default_factory=Permissions)
    """The permissions that the author's code has."""
