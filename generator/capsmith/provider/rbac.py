"""Provider -> permissions: the manager's, those that core aggregates, and roles for people.

Each permission carries its reason, which stands as a comment above it and in the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from capsmith.provider.model import Component, PolicyRule, Provider, Resource, Role

_READ = ("get", "list", "watch")
_CHANGE = ("get", "list", "patch", "update", "watch")
_ALL = ("create", "delete", "get", "list", "patch", "update", "watch")
_STATUS = ("get", "patch", "update")
_CORE = "cluster.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Permission:
    """One RBAC rule and why it is there."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    reason: str
    names: tuple[str, ...] = ()


def policy_rule(permission: Permission) -> dict[str, Any]:
    """The ``PolicyRule`` of a Role or ClusterRole."""
    rule: dict[str, Any] = {
        "apiGroups": list(permission.groups),
        "resources": list(permission.resources),
    }
    if permission.names:
        rule["resourceNames"] = list(permission.names)
    return {**rule, "verbs": list(permission.verbs)}


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What the manager needs in the whole cluster (RB-06, RB-07, RB-10 besides the namespace)."""
    return (
        *_own_kinds(component),
        *_capacity(component),
        Permission(
            (_CORE,),
            ("clusters", "machines"),
            _READ,
            "The owners of the provider's objects are read, never written (RB-07).",
        ),
        Permission(
            ("",),
            ("secrets",),
            ("get",),
            "Bootstrap data stand in a Secret beside the Machine, and are read by name (RB-07).",
        ),
        *_namespaces(provider),
        Permission(
            ("events.k8s.io",),
            ("events",),
            ("create",),
            "Failures are told as events (RB-07).",
        ),
        *(_authors(rule) for rule in provider.rbac),
    )


def namespace_permissions(provider: Provider) -> tuple[Permission, ...]:
    """What the manager needs in its own namespace only (RB-10, RB-04)."""
    lease = Permission(
        ("coordination.k8s.io",),
        ("leases",),
        ("create", "get", "patch", "update"),
        "One manager at a time leads, by a Lease (RB-10).",
    )
    if provider.credentials is None:
        return (lease,)
    secrets = Permission(
        ("",),
        ("secrets",),
        ("delete", "get", "list", "patch", "watch"),
        "An identity becomes the owner of its Secret, so that clusterctl move takes it along;"
        " with OwnerReferencesPermissionEnforcement, changing owners needs delete (RB-04, MV-03).",
    )
    return lease, secrets


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    """What the managers of core and of the control plane need on the provider's kinds."""
    return tuple(
        permission
        for resource in component.resources
        if resource.role is not Role.IDENTITY
        for permission in _aggregate(resource)
    )


def viewer_permissions(component: Component) -> tuple[Permission, ...]:
    """Reading for people."""
    return _people(component, _READ, "See the provider's objects.")


def editor_permissions(component: Component) -> tuple[Permission, ...]:
    """Reading and writing for people."""
    return _people(component, _ALL, "Create, change and delete the provider's objects.")


def _own_kinds(component: Component) -> tuple[Permission, ...]:
    reconciled = [resource for resource in component.resources if not resource.role.is_template]
    groups = _groups(reconciled)
    return (
        Permission(groups, _plurals(reconciled), _CHANGE, "The provider's own kinds (RB-06)."),
        Permission(
            groups, _plurals(reconciled, "/status"), _STATUS, "Their status subresource (RB-06)."
        ),
        Permission(
            groups,
            _plurals(reconciled, "/finalizers"),
            ("update",),
            "They own other objects: owner references that block deletion need this (RB-04).",
        ),
    )


def _capacity(component: Component) -> tuple[Permission, ...]:
    templates = [
        resource
        for resource in component.role(Role.INFRA_MACHINE_TEMPLATE)
        if "capacity" in resource.features
    ]
    if not templates:
        return ()
    groups = _groups(templates)
    reason = "The capacity of a machine template is written for autoscaling from zero (IM-16)."
    return (
        Permission(groups, _plurals(templates), _READ, reason),
        Permission(groups, _plurals(templates, "/status"), _STATUS, reason),
    )


def _namespaces(provider: Provider) -> tuple[Permission, ...]:
    if provider.credentials is None:
        return ()
    reason = "An identity allows namespaces by label, so their labels are read."
    return (Permission(("",), ("namespaces",), _READ, reason),)


def _authors(rule: PolicyRule) -> Permission:
    reason = "The infrastructure code needs it (provider.yaml, rbac)."
    return Permission(rule.api_groups, rule.resources, rule.verbs, reason, rule.resource_names)


def _aggregate(resource: Resource) -> tuple[Permission, ...]:
    groups = (str(resource.group),)
    plural = str(resource.plural)
    if resource.role is Role.INFRA_CLUSTER_TEMPLATE:
        verbs = tuple(verb for verb in _ALL if verb != "create")
        reason = (
            "ClusterClasses become owners of their templates,"
            " and changing owners needs delete (RB-03, RB-05)."
        )
        return (Permission(groups, (plural,), verbs, reason),)
    reason = "Core creates, patches and deletes these on behalf of their owners (RB-03)."
    if resource.role.is_template:
        reason = "Core and control planes clone these, and rotate them for topologies (RB-03)."
        return (Permission(groups, (plural,), _ALL, reason),)
    return (
        Permission(groups, (plural,), _ALL, reason),
        Permission(
            groups,
            (f"{plural}/finalizers",),
            ("update",),
            "Owner references to these that block deletion need this (RB-04, RB-05).",
        ),
    )


def _people(
    component: Component, verbs: tuple[str, ...], reason: str
) -> tuple[Permission, Permission]:
    groups = _groups(component.resources)
    with_status = [r for r in component.resources if not r.role.is_template]
    return (
        Permission(groups, _plurals(component.resources), verbs, reason),
        Permission(groups, _plurals(with_status, "/status"), ("get",), "See how they are doing."),
    )


def _groups(resources: Sequence[Resource]) -> tuple[str, ...]:
    return tuple(sorted({str(resource.group) for resource in resources}))


def _plurals(resources: Sequence[Resource], subresource: str = "") -> tuple[str, ...]:
    return tuple(sorted(f"{resource.plural}{subresource}" for resource in resources))
