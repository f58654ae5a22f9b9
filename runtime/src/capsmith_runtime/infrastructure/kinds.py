"""Descriptions of the kinds of an infrastructure provider."""

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
    """A kind of identities, which refer to Secrets with credentials or have the author's fields.

    A cluster-scoped identity lists the namespaces that may use it, and its Secret is in the
    manager's namespace.  A namespaced identity serves its own namespace, which also has its
    Secret.
    """

    resource: ResourceType
    keys: tuple[str, ...] = ()
    """Required keys of the Secret."""
    refers_to_secret: bool = True

    def find_in(self, name: str, user: Object) -> NamespacedName:
        """Return the key of the identity to which the infrastructure cluster ``user`` refers."""
        return NamespacedName(metadata.namespace(user) if self.resource.namespaced else "", name)
