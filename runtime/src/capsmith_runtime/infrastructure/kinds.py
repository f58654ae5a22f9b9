"""Descriptions of an infrastructure provider's kinds."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.infrastructure.api import InfraClusterReconciler, InfraMachineReconciler
from capsmith_runtime.reconcile.kinds import Kind

InfraClusterKind = Kind[InfraClusterReconciler[Any]]
InfraMachineKind = Kind[InfraMachineReconciler[Any]]

__all__ = ["IdentityKind", "InfraClusterKind", "InfraMachineKind"]
