"""What the manager of an infrastructure provider needs, and core on its kinds."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith.provider.model import Component, Provider, Resource, Role
from capsmith.provider.rbac import common
from capsmith.provider.rbac.model import READ, STATUS, Permission, groups, plurals


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in the whole cluster (RB-06, RB-07, RB-10 besides the namespace)."""
    return (
        *common.own_kinds(component),
        *_capacity(component),
        common.core_objects("clusters", "machines"),
        Permission(
            ("",),
            ("secrets",),
            ("get",),
            "Bootstrap data stand in a Secret beside the Machine, and are read by name (RB-07).",
        ),
        *_pools(component),
        *_addresses(component),
        *_namespaces(provider),
        common.EVENTS,
    )


def namespace_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in its own namespace only (RB-10, RB-04)."""
    if provider.credentials is None:
        return (common.LEASE,)
    secrets = Permission(
        ("",),
        ("secrets",),
        ("delete", "get", "list", "patch", "watch"),
        "An identity becomes the owner of its Secret, so that clusterctl move takes it along;"
        " with OwnerReferencesPermissionEnforcement, changing owners needs delete (RB-04, MV-03).",
    )
    return common.LEASE, secrets


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    """What the managers of core and of the control plane need on the provider's kinds."""
    return tuple(
        permission
        for resource in component.resources
        if resource.role is not Role.IDENTITY
        for permission in _aggregate(resource)
    )


def _addresses(component: Component) -> tuple[Permission, ...]:
    if "addressesFromPools" not in component.features:
        return ()
    group, made = ("ipam.cluster.x-k8s.io",), ("create", "patch", *READ)
    return (
        Permission(group, ("ipaddressclaims",), made, "Machines claim addresses (IP-12)."),
        Permission(group, ("ipaddresses",), READ, "What they got is read (IP-12)."),
    )


def _capacity(component: Component) -> tuple[Permission, ...]:
    templates = [
        resource
        for resource in component.role(Role.INFRA_MACHINE_TEMPLATE)
        if "capacity" in resource.features
    ]
    if not templates:
        return ()
    reason = "The capacity of a machine template is written for autoscaling from zero (IM-16)."
    return (
        Permission(groups(templates), plurals(templates), READ, reason),
        Permission(groups(templates), plurals(templates, "/status"), STATUS, reason),
    )


def _pools(component: Component) -> tuple[Permission, ...]:
    pools = component.role(Role.INFRA_MACHINE_POOL)
    if not pools:
        return ()
    follows = Permission(
        ("cluster.x-k8s.io",),
        ("machinepools",),
        (*READ, "patch"),
        "A MachinePool follows the infrastructure where that decides on the number (MP-17).",
    )
    data = Permission(
        ("",),
        ("secrets",),
        ("list", "watch"),
        "Bootstrap data of pools change over time, and later machines need new ones (MP-19).",
    )
    whole = any(pool.machine_kind is None for pool in pools)
    return (follows, *((data,) if whole else ()), *_pooled_machines(component, pools))


def _pooled_machines(component: Component, pools: Sequence[Resource]) -> tuple[Permission, ...]:
    kinds = {pool.machine_kind for pool in pools}
    machines = [each for each in component.role(Role.INFRA_MACHINE) if each.kind in kinds]
    if not machines:
        return ()
    return (
        Permission(
            ("cluster.x-k8s.io",),
            ("machines",),
            ("delete",),
            "Pools become smaller by the deletion of Machines (MP-12, RB-11).",
        ),
        Permission(
            groups(machines),
            plurals(machines),
            ("create", "delete"),
            "Pools are made of these (MP-07).",
        ),
    )


def _namespaces(provider: Provider) -> tuple[Permission, ...]:
    if provider.credentials is None:
        return ()
    reason = "An identity allows namespaces by label, so their labels are read."
    return (Permission(("",), ("namespaces",), READ, reason),)


def _aggregate(resource: Resource) -> tuple[Permission, ...]:
    if resource.role is Role.INFRA_CLUSTER_TEMPLATE:
        return common.aggregate_class_template(resource)
    if resource.role.is_template:
        return common.aggregate_cloned(resource)
    return common.aggregate_object(resource)
