"""What the manager of an IPAM provider needs, and core on its kinds."""

from __future__ import annotations

from capsmith.provider.model import Component, Provider
from capsmith.provider.rbac import common
from capsmith.provider.rbac.model import Permission


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in the whole cluster (RB-06, RB-07)."""
    return (
        *common.own_kinds(component),
        common.core_objects("clusters"),
        common.EVENTS,
    )


def namespace_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in its own namespace only (RB-10)."""
    return (common.LEASE,)


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    """Core has no business with the provider's kinds."""
    return ()
