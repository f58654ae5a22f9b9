"""Reconcilers of kinds that implement Resource, with their arguments and results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.infrastructure.api import InfraClusterView, InfraDeleteScope, OwnerScope
from capsmith_runtime.reconcile.results import Deleted, State, Waiting
from capsmith_runtime.reconcile.sessions import Credentials, SessionUser

Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One entry of ``metadata.ownerReferences``."""

    group: str
    kind: str
    name: str
    uid: str
    controller: bool
    """Whether the owner is the controller; at most one is."""


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class ResourceScope(OwnerScope, Generic[Spec]):
    """Scope of ``reconcile_normal`` of a resource."""

    spec: Spec
    """The spec, as an instance of the generated class."""
    cluster: Cluster | None
    """The Cluster to which it belongs, by label or by its owners; None if there is none."""
    owners: tuple[Owner, ...]
    """The entries of ``metadata.ownerReferences``."""
    credentials: Credentials = field(repr=False)
    """The content of the identity's Secret; empty without an identity."""
    infra_cluster: InfraClusterView | None = None
    """The infrastructure cluster of ``cluster``, if this provider serves its kind.

    A change of its spec or status, conditions aside, reconciles the resource.
    """

    def _session_credentials(self) -> Credentials:
        return self.credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDeleteScope(InfraDeleteScope[Spec]):
    """Scope of ``reconcile_delete`` of a resource.

    Its owners and its Cluster may have been deleted already.
    """

    cluster: Cluster | None
    """None if it no longer exists, or never belonged to one."""
    owners: tuple[Owner, ...]
    """The entries of ``metadata.ownerReferences``."""
    infra_cluster: InfraClusterView | None = None
    """The infrastructure cluster, if it still exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceState(State):
    """State of the existing infrastructure of a resource."""


class ResourceReconciler(SessionUser, ABC, Generic[Spec]):
    """Manages the infrastructure of one kind of resources.

    Methods may be ``def`` or ``async def``.  They are called repeatedly, also after a crash at any
    point: look up the infrastructure by ``external_id`` before you create it.
    """

    @abstractmethod
    def reconcile_normal(
        self, resource: ResourceScope[Spec]
    ) -> ResourceState | Waiting | Awaitable[ResourceState | Waiting]:
        """Create or update the infrastructure and return its state."""

    @abstractmethod
    def reconcile_delete(
        self, resource: ResourceDeleteScope[Spec]
    ) -> Deleted | Waiting | Awaitable[Deleted | Waiting]:
        """Delete the infrastructure; return Deleted only when it no longer exists."""
