"""What the manager of a control plane provider needs, and core on its kinds."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith.provider.model import Component, GroupKind, Provider, Role
from capsmith.provider.rbac import common
from capsmith.provider.rbac.model import ALL, READ, STATUS, Permission

_CORE = "cluster.x-k8s.io"
_FOREIGN = (f"bootstrap.{_CORE}", f"infrastructure.{_CORE}")


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in the whole cluster (RB-06, RB-07, RB-08)."""
    bootstraps = [each.bootstrap for each in component.role(Role.CONTROL_PLANE) if each.bootstrap]
    return (
        *common.own_kinds(component),
        common.core_objects("clusters"),
        *(_machines(bootstraps) if bootstraps else ()),
        Permission(
            ("",),
            ("secrets",),
            ("create", "delete", "get", "list", "patch", "update", "watch"),
            "Certificates and kubeconfig of each cluster are made, renewed and owned (SEC-01,"
            " SEC-03); with OwnerReferencesPermissionEnforcement, changing owners needs delete"
            " (RB-04).",
        ),
        common.EVENTS,
    )


def namespace_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in its own namespace only (RB-10)."""
    return (common.LEASE,)


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    """What core needs on the provider's kinds."""
    return tuple(
        permission
        for resource in component.resources
        for permission in (
            common.aggregate_class_template(resource)
            if resource.role.is_template
            else common.aggregate_object(resource)
        )
    )


def _machines(bootstraps: Sequence[GroupKind]) -> tuple[Permission, ...]:
    """Machines with their objects, of whatever provider."""
    groups = sorted({*_FOREIGN, *(str(each.group) for each in bootstraps)})
    return (
        Permission(
            (_CORE,), ("machines",), ALL, "Machines are made, kept and removed (RB-07, CP-19)."
        ),
        Permission(
            (_CORE,),
            ("machines/status",),
            STATUS,
            "UpToDate and OwnerRemediated are theirs to say who own a Machine (CP-31, CP-32).",
        ),
        Permission(
            tuple(groups),
            ("*",),
            ALL,
            "Each Machine gets a clone of the infrastructure template and a bootstrap"
            " configuration, of any provider; the Cluster becomes an owner of the template, and"
            " changing owners needs delete (RB-07, RB-04, CP-21).",
        ),
        Permission(
            ("apiextensions.k8s.io",),
            ("customresourcedefinitions",),
            READ,
            "The labels of CRDs say which versions of those kinds to use (RB-08, GEN-01).",
        ),
    )
