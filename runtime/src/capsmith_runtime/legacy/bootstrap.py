"""Deprecated capsmith 0.1 names for bootstrap providers."""

from __future__ import annotations

from capsmith_runtime.bootstrap.api import (
    BootstrapConfigReconciler,
    BootstrapDocument,
    CertificatePair,
)
from capsmith_runtime.bootstrap.api import BootstrapConfigScope as BootstrapConfig
from capsmith_runtime.contract.bootstrap import Taint
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.reconcile.scopes import BootstrapData

__all__ = [
    "BootstrapConfig",
    "BootstrapConfigReconciler",
    "BootstrapData",
    "BootstrapDocument",
    "CertificatePair",
    "MachinePool",
    "Taint",
]
