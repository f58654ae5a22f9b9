"""What the manager of a bootstrap provider needs, and core on its kinds."""

from __future__ import annotations

from capsmith.provider.model import Component, Provider
from capsmith.provider.rbac import common
from capsmith.provider.rbac.model import Permission


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in the whole cluster (RB-06, RB-07)."""
    return (
        *common.own_kinds(component),
        common.core_objects("clusters", "machines", "machinepools"),
        Permission(
            ("",),
            ("secrets",),
            ("create", "delete", "get", "patch"),
            "Bootstrap data stand in Secrets, and certificates are read, all by name; with"
            " OwnerReferencesPermissionEnforcement, changing owners needs delete (RB-07, RB-04).",
        ),
        Permission(
            ("",),
            ("configmaps",),
            ("create", "delete", "get", "patch"),
            "A lock lets one machine at a time initialise a control plane (BC-12).",
        ),
        common.EVENTS,
    )


def namespace_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in its own namespace only (RB-10)."""
    return (common.LEASE,)


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    """What the managers of core and of the control plane need on the provider's kinds."""
    return tuple(
        permission
        for resource in component.resources
        for permission in (
            common.aggregate_cloned(resource)
            if resource.role.is_template
            else common.aggregate_object(resource)
        )
    )
