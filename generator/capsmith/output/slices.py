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

_SLICE_OF_ROLE: Final = {
    Role.REMEDIATION: "remediation",
    Role.RESOURCE: "resource",
    Role.IDENTITY: "identity",
}


def list_slices(component: Component) -> tuple[str, ...]:
    """Return the runtime library folders that a component's kinds need.

    Each provider type has its own folder. The folders ``remediation``, ``resource`` and
    ``identity`` are added if any kind has the role with that name.
    """
    types = tuple(SLICE_OF_COMPONENT[type] for type in component.types)
    further = tuple(name for role, name in _SLICE_OF_ROLE.items() if component.role(role))
    return (*types, *further)


def list_standalone_resources(component: Component) -> list[Resource]:
    """Return the kinds with the role Resource, or none if the component includes infrastructure."""
    is_infrastructure = "infrastructure" in component.types
    return [] if is_infrastructure else list(component.role(Role.RESOURCE))
