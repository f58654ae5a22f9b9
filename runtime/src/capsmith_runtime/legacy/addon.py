"""Deprecated capsmith 0.1 names for add-on providers."""

from __future__ import annotations

from capsmith_runtime.addon.api import AddonDeleteScope as AddonDeletion
from capsmith_runtime.addon.api import AddonReconciler, AddonState, Workload
from capsmith_runtime.addon.api import AddonScope as Addon
from capsmith_runtime.kube.client import ResourceType

__all__ = [
    "Addon",
    "AddonDeletion",
    "AddonReconciler",
    "AddonState",
    "ResourceType",
    "Workload",
]
