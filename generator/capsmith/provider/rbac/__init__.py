"""Provider -> permissions: the manager's, those that core aggregates, and roles for people.

Each permission carries its reason, which stands as a comment above it and in the reference.
One module a type of provider, which this one asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from capsmith.provider.model import Component, Provider
from capsmith.provider.rbac import (
    addon,
    bootstrap,
    common,
    control_plane,
    infrastructure,
    ipam,
    runtime_extension,
)
from capsmith.provider.rbac.model import ALL, READ, Permission, policy_rule

__all__ = [
    "Permission",
    "aggregate_permissions",
    "editor_permissions",
    "manager_permissions",
    "namespace_permissions",
    "policy_rule",
    "viewer_permissions",
]

_BY_TYPE: Mapping[str, ModuleType] = {
    "infrastructure": infrastructure,
    "bootstrap": bootstrap,
    "control-plane": control_plane,
    "ipam": ipam,
    "runtime-extension": runtime_extension,
    "addon": addon,
}


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What a component's manager needs in the whole cluster, the author's rules last."""
    found: tuple[Permission, ...] = _BY_TYPE[component.type].manager_permissions(
        provider, component
    )
    # Control planes read CRDs for their own reasons.
    reads = any("customresourcedefinitions" in permission.resources for permission in found)
    return (
        *found,
        *(() if reads else common.definitions(provider, component)),
        *common.migration(provider, component),
        *common.authors(provider),
    )


def namespace_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What a component's manager needs in its own namespace only."""
    found: tuple[Permission, ...] = _BY_TYPE[component.type].namespace_permissions(
        provider, component
    )
    return found


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    """What the managers of core and of control planes need on a component's kinds."""
    found: tuple[Permission, ...] = _BY_TYPE[component.type].aggregate_permissions(component)
    return found


def viewer_permissions(component: Component) -> tuple[Permission, ...]:
    """Reading for people."""
    return common.people(component, READ, "See the provider's objects.")


def editor_permissions(component: Component) -> tuple[Permission, ...]:
    """Reading and writing for people."""
    return common.people(component, ALL, "Create, change and delete the provider's objects.")
