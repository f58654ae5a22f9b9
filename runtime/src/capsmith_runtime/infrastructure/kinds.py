"""Kinds of an infrastructure provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.infrastructure.api import (
    InfraClusterReconciler,
    InfraMachineReconciler,
)
from capsmith_runtime.kube.client import NamespacedName, ResourceType
from capsmith_runtime.reconcile.kinds import Kind

InfraClusterKind = Kind[InfraClusterReconciler[Any]]
InfraMachineKind = Kind[InfraMachineReconciler[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityKind:
    """A kind of identities, which refer to Secrets with credentials, or have fields of the author.

    A cluster-scoped one lists the namespaces that may use it, and its Secret is in the namespace
    of the manager.  A namespaced one is for its own namespace, and its Secret is there.
    """

    resource: ResourceType
    keys: tuple[str, ...] = ()
    """Required keys of the Secret."""
    refers_to_secret: bool = True

    def find_in(self, name: str, user: Object) -> NamespacedName:
        """Return the key of an identity to which an infrastructure cluster refers."""
        return NamespacedName(metadata.namespace(user) if self.resource.namespaced else "", name)
