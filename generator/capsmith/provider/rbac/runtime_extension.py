"""What the manager of a runtime extension needs; core needs nothing on its kinds: it has none."""

from __future__ import annotations

from capsmith.provider.model import Component, Provider
from capsmith.provider.rbac.model import Permission


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in the whole cluster (RX-09)."""
    return (
        Permission(
            ("runtime.cluster.x-k8s.io",),
            ("extensionconfigs",),
            # Server-side apply is a patch, which creates what is not there.
            ("create", "delete", "patch"),
            "The extension registers itself when it serves (RX-09); with"
            " OwnerReferencesPermissionEnforcement, changing owners needs delete (RB-04).",
            (str(provider.name),),
        ),
        Permission(
            ("rbac.authorization.k8s.io",),
            ("clusterroles",),
            ("get",),
            "This very role owns the registration, which so goes when clusterctl removes the role.",
            (f"{component.namespace}-manager-role",),
        ),
    )


def namespace_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in its own namespace only: nothing, for all replicas serve."""
    return ()


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    """Core needs nothing: an extension has no kinds."""
    return ()
