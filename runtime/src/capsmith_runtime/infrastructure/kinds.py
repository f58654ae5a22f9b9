"""Kinds of an infrastructure provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capsmith_runtime.infrastructure.reconcilers import (
    InfraClusterReconciler,
    InfraMachineReconciler,
)
from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.reconcile.kinds import Kind

InfraClusterKind = Kind[InfraClusterReconciler[Any]]
InfraMachineKind = Kind[InfraMachineReconciler[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityKind:
    """The kind of identities, which refer to Secrets with credentials."""

    resource: ResourceType
    keys: tuple[str, ...]
    """Required keys of the Secret."""
