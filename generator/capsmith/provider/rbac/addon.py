"""What the manager of an add-on provider needs; core has no business with its kinds."""

from __future__ import annotations

from capsmith.provider.model import Component, Provider
from capsmith.provider.rbac import common
from capsmith.provider.rbac.model import READ, Permission


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in the whole cluster (RB-06, RB-07, AD-03)."""
    return (
        *common.own_kinds(component),
        common.core_objects("clusters"),
        Permission(
            ("",),
            ("secrets",),
            READ,
            "The kubeconfigs of clusters are Secrets beside them (SEC-01); a new one is news.",
        ),
        common.EVENTS,
    )


def namespace_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in its own namespace only (RB-10)."""
    return (common.LEASE,)


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    """Core reads nothing of an add-on provider's kinds (AD-01)."""
    return ()
