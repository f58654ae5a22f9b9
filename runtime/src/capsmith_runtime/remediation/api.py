"""Reconcilers of kinds that implement Remediation, with their arguments and results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.errors import check_reason
from capsmith_runtime.infrastructure.api import (
    InfraClusterUser,
    InfraClusterView,
    InfraDeleteScope,
    InfraMachineView,
)
from capsmith_runtime.reconcile.results import Deleted, State, Waiting
from capsmith_runtime.reconcile.scopes import SessionScope
from capsmith_runtime.reconcile.sessions import Credentials, SessionUser

Spec = TypeVar("Spec")


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class RemediationScope(SessionScope, InfraClusterUser, Generic[Spec]):
    """Scope of ``reconcile_normal`` for a remediation.

    ``external_id`` identifies this request to remediate; the machine has its own external id. Pass
    it on with each action, or record it, so that an action is not repeated after a crash or a move.
    """

    spec: Spec
    """The remediation's spec, as an instance of the generated class."""
    cluster: Cluster
    """The Cluster that the unhealthy Machine belongs to."""
    machine: Machine
    """The unhealthy Machine, which has the same name as the remediation and owns it."""
    infra_machine: InfraMachineView
    """The Machine's infrastructure machine."""
    infra_cluster: InfraClusterView | None
    """The Cluster's infrastructure cluster, or None if another provider manages it."""
    credentials: Credentials = field(repr=False)
    """Credentials of the infrastructure machine's identity, or empty if it uses none."""

    def _session_credentials(self) -> Credentials:
        return self.credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationDeleteScope(InfraDeleteScope[Spec], InfraClusterUser):
    """Scope of ``reconcile_delete`` for a remediation.

    Core deletes the remediation once the Machine is healthy again. The Machine and everything else
    that it belonged to may already have been deleted.
    """

    cluster: Cluster | None
    """The Cluster that the Machine belongs to, or None if it no longer exists."""
    machine: Machine | None
    """The Machine that owns the remediation, or None if it no longer exists."""
    infra_machine: InfraMachineView | None
    """The infrastructure machine, or None if it no longer exists."""
    infra_cluster: InfraClusterView | None
    """The infrastructure cluster, or None if it no longer exists or another provider manages it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationState(State):
    """State of a remediation, as ``reconcile_normal`` returns it.

    ``ready`` is true if the remediation is complete, so that only the health check is left to
    decide. With ``ready=False`` it is in progress. The Machine's condition ExternallyRemediated
    shows the same.
    """


@dataclass(frozen=True, slots=True)
class RemediationFailed:
    """Result of a remediation that cannot help: the Machine's owner replaces the Machine.

    The Machine's condition OwnerRemediated becomes False, which cannot be taken back.
    """

    reason: str
    """Reason of the Ready condition in CamelCase."""
    message: str = ""
    """Message of the Ready condition."""
    status: Any = None
    """Instance of the generated Status class, or None to keep the status fields unchanged."""

    def __post_init__(self) -> None:
        check_reason(self.reason)


class RemediationReconciler(SessionUser, ABC, Generic[Spec]):
    """Remediates unhealthy Machines as one kind of remediation describes.

    Methods may be ``def`` or ``async def``. They are called repeatedly, and again after a crash at
    any point. Only core deletes a remediation: it does so once the Machine is healthy.
    """

    @abstractmethod
    def reconcile_normal(
        self, remediation: RemediationScope[Spec]
    ) -> (
        RemediationState
        | RemediationFailed
        | Waiting
        | Awaitable[RemediationState | RemediationFailed | Waiting]
    ):
        """Remediate the Machine unless that has been done, and return the state."""

    @abstractmethod
    def reconcile_delete(
        self, remediation: RemediationDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Undo what must not outlive the remediation; return Deleted when nothing is left."""
