"""The author's API for control planes that consist of Machines: hooks with working defaults.

Machines are created, replaced, rolled out and deleted without your code. Override a hook where only
your code knows the answer: whether the API server is up, whether members are healthy, or what must
happen after a member has joined or before one is removed. Hooks are ``def`` or ``async def``. They
are called repeatedly, and again after a crash at any point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from capsmith_runtime.contract.constants import PAUSED_CONDITION, READY_CONDITION
from capsmith_runtime.contract.control_plane import OWN_CONDITIONS, ControlPlaneMachine
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Condition
from capsmith_runtime.errors import ApiError
from capsmith_runtime.kube.client import KubeClient
from capsmith_runtime.reconcile.kubernetes_client import (
    ClientSession,
    KubernetesClient,
    connect,
    wait_for,
)
from capsmith_runtime.reconcile.permissions import Anything
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.scopes import SessionScope
from capsmith_runtime.reconcile.sessions import SessionUser

Spec = TypeVar("Spec")

PROBED_GROUP = "apps"
"""API group whose resources every API server serves, but lists only to authenticated clients."""

MAX_CONDITIONS = 16
"""Maximum number of conditions that the author's code sets.

The list can hold 32, including the conditions that the runtime writes (ST-01).
"""
RESERVED = frozenset({*OWN_CONDITIONS, READY_CONDITION, PAUSED_CONDITION})

WorkloadReader = Callable[[], Awaitable[KubeClient]]


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class ControlPlaneScope(SessionScope, Generic[Spec]):
    """Read-only view of a control plane with its current Machines."""

    spec: Spec
    """The control plane's spec, as an instance of the generated class."""
    cluster: Cluster
    """The Cluster that the control plane belongs to."""
    version: str
    """The desired Kubernetes version; empty if the kind has no ``spec.version``."""
    replicas: int
    """The desired number of Machines."""
    machines: Sequence[ControlPlaneMachine]
    """All Machines, including outdated ones and those being deleted, oldest first."""
    initialized: bool
    """Whether the API server has ever responded; once true, this stays true."""
    workload_client: KubernetesClient = field(
        default_factory=KubernetesClient, repr=False, compare=False
    )
    """Workload cluster client, which may send any request that the kubeconfig allows.

    Its methods raise NotAvailableError if there is no kubeconfig; do not catch it, so that the
    reconcile waits.
    """
    _workload: WorkloadReader = field(repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    async def workload_async(self) -> KubeClient:
        """Return a client for the workload cluster that can watch, unlike ``workload_client``.

        Raises NotAvailableError if there is no kubeconfig; do not catch it, so that the reconcile
        waits.
        """
        return await self._workload()

    async def api_server_answers_async(self) -> bool:
        """Return whether the API server responds, without blocking the event loop."""
        try:
            client = await self._workload()
            return bool(await client.served_versions(PROBED_GROUP))
        except (ApiError, NotAvailableError):
            return False

    def api_server_answers(self) -> bool:
        """Return whether the API server responds; use this method in synchronous code."""
        return wait_for(self.api_server_answers_async, self._loop)


def connect_workload_client(scope: ControlPlaneScope[Any]) -> None:
    """Let the scope's ``workload_client`` send requests until the end of the call."""
    session = ClientSession(scope._workload, Anything(), "", scope._loop)
    connect(scope.workload_client, session)


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class ControlPlaneMember(Generic[Spec]):
    """A single Machine in a control plane."""

    machine: ControlPlaneMachine
    """The member's Machine."""
    control_plane: ControlPlaneScope[Spec]
    """The control plane, with all its Machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneHealth:
    """Health of a control plane's members; a member without an entry is healthy."""

    unhealthy: Mapping[str, str] = field(default_factory=dict)
    """The problem of each unhealthy member, keyed by the Machine's name.

    Unhealthy members block scaling and rollouts. A member is replaced only if enough others are
    healthy.
    """
    conditions: Sequence[Condition] = ()
    """Additional conditions; a condition that is no longer returned is removed from the object."""
    status: Any = None
    """Instance of the generated Status class, or None to leave its fields unchanged."""
    requeue_after: float | None = None
    """Seconds until the next reconcile, or None to wait for the sync period."""

    def __post_init__(self) -> None:
        types = [condition.type for condition in self.conditions]
        if len(types) > MAX_CONDITIONS or len(set(types)) < len(types):
            raise ValueError(f"conditions must be at most {MAX_CONDITIONS}, each type once")
        reserved = sorted(RESERVED.intersection(types))
        if reserved:
            raise ValueError(f"conditions are written for you: {', '.join(reserved)}")


class ControlPlaneReconciler(SessionUser, Generic[Spec]):
    """Base class for control plane reconcilers; override the hooks that you need."""

    def is_initialized(
        self, control_plane: ControlPlaneScope[Spec]
    ) -> bool | Waiting | Awaitable[bool | Waiting]:
        """Return whether the API server accepts requests.

        Called until it returns True for the first time (CP-02).
        """
        return control_plane.api_server_answers()

    def health(
        self, control_plane: ControlPlaneScope[Spec]
    ) -> ControlPlaneHealth | Waiting | Awaitable[ControlPlaneHealth | Waiting]:
        """Report which members are unhealthy; core already reports problems with their Nodes."""
        return ControlPlaneHealth()

    def after_add(
        self, member: ControlPlaneMember[Spec]
    ) -> Waiting | Awaitable[Waiting | None] | None:
        """Run after a new Machine has become a Node; called again until it returns None.

        Until then, no other Machine is added or removed.
        """
        return None

    def before_remove(
        self, member: ControlPlaneMember[Spec]
    ) -> Waiting | Awaitable[Waiting | None] | None:
        """Run before a Machine's infrastructure is deleted, whatever caused the deletion.

        At this point the Node is drained and the server is still running, so remove the member from
        etcd here. Returning Waiting delays the deletion. Not called if the whole control plane is
        being deleted.
        """
        return None
