"""Clients of workload clusters, for kinds of infrastructure that switch them on."""

from __future__ import annotations

from typing import Final

from capsmith.provider.model import Component

WORKLOAD_CLIENT: Final = "workloadClient"
"""The feature of infrastructure clusters and machines."""

_TYPES: Final = frozenset({"addon", "control-plane"})
"""The types of provider whose controllers use workload clusters themselves."""


def has_workload_client(component: Component) -> bool:
    """Return whether the code of any kind gets a client of the workload cluster."""
    return WORKLOAD_CLIENT in component.features


def uses_workload_clusters(component: Component) -> bool:
    """Return whether its manager sends requests to API servers of workload clusters."""
    return has_workload_client(component) or not _TYPES.isdisjoint(component.types)
