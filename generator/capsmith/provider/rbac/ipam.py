"""What the manager of an IPAM provider needs, and core on its kinds."""

from __future__ import annotations

from capsmith.provider.model import Component, Provider
from capsmith.provider.rbac import common
from capsmith.provider.rbac.model import ALL, CHANGE, STATUS, Permission

_IPAM = ("ipam.cluster.x-k8s.io",)


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in the whole cluster (IP-14, RB-06, RB-07)."""
    return (
        *common.own_kinds(component),
        common.core_objects("clusters"),
        Permission(
            _IPAM,
            ("ipaddressclaims",),
            CHANGE,
            "Claims get a finalizer while they have an address (IP-14).",
        ),
        Permission(
            _IPAM, ("ipaddressclaims/status",), STATUS, "Claims are told their address (IP-14)."
        ),
        Permission(
            _IPAM,
            ("ipaddressclaims/finalizers",),
            ("update",),
            "Claims own their addresses: owner references that block deletion need this (RB-04).",
        ),
        Permission(
            _IPAM,
            ("ipaddresses",),
            ALL,
            "Addresses are made and taken back; changing their owners needs delete (IP-14, RB-04).",
        ),
        common.EVENTS,
    )


def namespace_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in its own namespace only (RB-10)."""
    return (common.LEASE,)


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    """Core has no business with the provider's kinds."""
    return ()
