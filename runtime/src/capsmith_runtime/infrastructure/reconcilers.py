"""Base classes of reconcilers.

Methods may be ``def`` or ``async def``.  They are called repeatedly: when nothing has changed, and
after a crash at any point.  So look up resources by ``external_id`` before you create them, and
return their current state.  The Ready condition reports exceptions, which are retried later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any, ClassVar, Generic, TypeVar

from capsmith_runtime.infrastructure.results import (
    InfraClusterState,
    InfraMachineState,
    MachineCapacity,
)
from capsmith_runtime.infrastructure.scopes import (
    InfraClusterDeleteScope,
    InfraClusterScope,
    InfraMachineDeleteScope,
    InfraMachineScope,
)
from capsmith_runtime.reconcile.results import Deleted, Terminated, Waiting
from capsmith_runtime.reconcile.sessions import SessionUser

Spec = TypeVar("Spec")


class InfraClusterReconciler(SessionUser, ABC, Generic[Spec]):
    """Manage the resources that the machines of a cluster share, such as load balancers."""

    @abstractmethod
    def reconcile_normal(
        self, cluster: InfraClusterScope[Spec]
    ) -> InfraClusterState | Waiting | Awaitable[InfraClusterState | Waiting]:
        """Create or update the infrastructure and return its state."""

    @abstractmethod
    def reconcile_delete(
        self, cluster: InfraClusterDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Delete the infrastructure; return Deleted only when it no longer exists."""


class InfraMachineReconciler(SessionUser, ABC, Generic[Spec]):
    """Manage the servers of Machines."""

    # True for code that was written with capsmith 0.1: see capsmith_runtime.legacy.
    _capacity_gets_spec: ClassVar[bool] = False

    @abstractmethod
    def reconcile_normal(
        self, machine: InfraMachineScope[Spec]
    ) -> (
        InfraMachineState
        | Waiting
        | Terminated
        | Awaitable[InfraMachineState | Waiting | Terminated]
    ):
        """Create or update the server and return its state.

        Never create a second server for a machine that has a provider id: return Terminated.
        """

    @abstractmethod
    def reconcile_delete(
        self, machine: InfraMachineDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Delete the server; return Deleted only when it no longer exists."""

    # Any, since an override that was written with capsmith 0.1 takes another type.
    def capacity(
        self, template: Any
    ) -> MachineCapacity | Waiting | Awaitable[MachineCapacity | Waiting | None] | None:
        """Return the capacity of a machine that is created from a template, None if unknown.

        ``template`` is an ``InfraMachineTemplateScope`` of the kind's spec.
        Called only for kinds with the feature ``capacity``, for each template once and after
        changes of it or of its cluster.
        """
        return None
