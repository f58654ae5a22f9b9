"""Homelab."""

from __future__ import annotations

from ._generated.provider import (
    Address,
    BootstrapData,
    Cluster,
    Condition,
    Endpoint,
    FailureDomain,
    Gone,
    InfraCluster,
    InfraClusterDeletion,
    InfraClusterReconciler,
    InfraClusterState,
    InfraClusterView,
    InfraMachine,
    InfraMachineDeletion,
    InfraMachineReconciler,
    InfraMachineState,
    Machine,
    MachineCapacity,
    NotAvailableError,
    Waiting,
)

__all__ = [
    "Address",
    "BootstrapData",
    "Cluster",
    "Condition",
    "Endpoint",
    "FailureDomain",
    "Gone",
    "InfraCluster",
    "InfraClusterDeletion",
    "InfraClusterReconciler",
    "InfraClusterState",
    "InfraClusterView",
    "InfraMachine",
    "InfraMachineDeletion",
    "InfraMachineReconciler",
    "InfraMachineState",
    "Machine",
    "MachineCapacity",
    "NotAvailableError",
    "Waiting",
]
