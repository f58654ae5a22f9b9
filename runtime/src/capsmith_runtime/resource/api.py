"""Reconcilers of kinds that implement Resource, with their arguments and results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.infrastructure.api import (
    InfraClusterUser,
    InfraClusterView,
    InfraDeleteScope,
    OwnerScope,
)
from capsmith_runtime.reconcile.results import Deleted, State, Waiting
from capsmith_runtime.reconcile.sessions import Credentials, SessionUser

Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An owner of a resource: an entry in its ``metadata.ownerReferences``."""

    group: str
    kind: str
    name: str
    uid: str
    controller: bool
    """Whether the owner is the controller, as at most one owner is."""


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class ResourceScope(OwnerScope, InfraClusterUser, Generic[Spec]):
    """Scope of ``reconcile_normal`` for a resource."""

    spec: Spec
    """The resource's spec, as an instance of the generated class."""
    cluster: Cluster | None
    """The Cluster that the resource belongs to by label or owners, or None if there is none."""
    owners: tuple[Owner, ...]
    """The entries in ``metadata.ownerReferences``."""
    credentials: Credentials = field(repr=False)
    """Content of the identity's Secret, or empty if there is no identity."""
    infra_cluster: InfraClusterView | None = None
    """The infrastructure cluster of ``cluster``, or None if this provider does not serve its kind.

    Changes to its spec or status, except to conditions, trigger a reconcile of the resource.
    """

    def _session_credentials(self) -> Credentials:
        return self.credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDeleteScope(InfraDeleteScope[Spec], InfraClusterUser):
    """Scope of ``reconcile_delete`` for a resource.

    The owners and the Cluster may already have been deleted.
    """

    cluster: Cluster | None
    """The Cluster that the resource belongs to, or None if there is none or it no longer exists."""
    owners: tuple[Owner, ...]
    """The entries in ``metadata.ownerReferences``."""
    infra_cluster: InfraClusterView | None = None
    """The infrastructure cluster, or None if it no longer exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceState(State):
    """State of a resource's existing infrastructure, as ``reconcile_normal`` returns it."""


class ResourceReconciler(SessionUser, ABC, Generic[Spec]):
    """Manages the infrastructure for one kind of resource.

    Methods may be ``def`` or ``async def``. They are called repeatedly, and again after a crash at
    any point: look up the infrastructure by ``external_id`` before you create it.
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
