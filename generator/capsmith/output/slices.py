"""Determine which folders of the runtime library a component needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capsmith.provider.model import Component, Resource, Role

SLICE_OF_COMPONENT: Final[Mapping[str, str]] = {
    "infrastructure": "infrastructure",
    "bootstrap": "bootstrap",
    "control-plane": "controlplane",
    "ipam": "ipam",
    "runtime-extension": "extension",
    "addon": "addon",
}


def list_slices(component: Component) -> tuple[str, ...]:
    """Return the folders of the runtime library that a component's kinds need.

    Each provider type has its own folder. The folder ``resource`` is added if any kind has the role
    Resource.
    """
    types = tuple(SLICE_OF_COMPONENT[type] for type in component.types)
    return (*types, "resource") if component.role(Role.RESOURCE) else types


def list_standalone_resources(component: Component) -> list[Resource]:
    """Return the kinds with the role Resource, unless the component has infrastructure."""
    is_infrastructure = "infrastructure" in component.types
    return [] if is_infrastructure else list(component.role(Role.RESOURCE))
