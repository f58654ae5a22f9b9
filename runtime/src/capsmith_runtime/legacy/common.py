"""Deprecated capsmith 0.1 names that every provider has."""

from __future__ import annotations

from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.model import Address, Condition, Endpoint, FailureDomain
from capsmith_runtime.reconcile.results import Deleted as Gone
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting

__all__ = [
    "Address",
    "Cluster",
    "Condition",
    "Endpoint",
    "FailureDomain",
    "Gone",
    "Machine",
    "NotAvailableError",
    "Waiting",
]
