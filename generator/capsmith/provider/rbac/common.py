"""Permissions that providers of several types need."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith.provider.migration import migrated_resources
from capsmith.provider.model import Component, PolicyRule, Provider, Resource
from capsmith.provider.rbac.model import ALL, CHANGE, READ, STATUS, Permission, groups, plurals

EVENTS = Permission(
    ("events.k8s.io",), ("events",), ("create",), "Failures are told as events (RB-07)."
)
LEASE = Permission(
    ("coordination.k8s.io",),
    ("leases",),
    ("create", "get", "patch", "update"),
    "One manager at a time leads, by a Lease (RB-10).",
)

DEFINITIONS = ("apiextensions.k8s.io",)


def own_kinds(component: Component) -> tuple[Permission, ...]:
    """What a manager needs on the kinds that it reconciles (RB-06, RB-04)."""
    reconciled = [resource for resource in component.resources if not resource.role.is_template]
    return (
        Permission(
            groups(reconciled), plurals(reconciled), CHANGE, "The provider's own kinds (RB-06)."
        ),
        Permission(
            groups(reconciled),
            plurals(reconciled, "/status"),
            STATUS,
            "Their status subresource (RB-06).",
        ),
        Permission(
            groups(reconciled),
            plurals(reconciled, "/finalizers"),
            ("update",),
            "They own other objects: owner references that block deletion need this (RB-04).",
        ),
    )


def migration(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """What a manager needs to rewrite stored objects, besides what it has on its own kinds.

    Nothing where objects cannot be stored in two versions.
    """
    migrated = migrated_resources(component, provider)
    if not migrated:
        return ()
    names = tuple(sorted(str(resource.crd_name) for resource in migrated))
    told = "When all objects are rewritten, only the storage version is stored (CRD-16)."
    return (
        Permission(DEFINITIONS, ("customresourcedefinitions/status",), ("patch",), told, names),
        *_templates([resource for resource in migrated if resource.role.is_template]),
    )


def _templates(migrated: Sequence[Resource]) -> tuple[Permission, ...]:
    if not migrated:
        return ()
    reason = "Stored templates are rewritten as well, unchanged (CRD-16)."
    verbs = ("list", "patch")
    return (Permission(groups(migrated), plurals(migrated), verbs, reason),)


def definitions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    """Reading CRDs, as the migration of stored objects needs it."""
    if not migrated_resources(component, provider):
        return ()
    reason = "Which versions are stored and served is read, and watched (CRD-16)."
    return (Permission(DEFINITIONS, ("customresourcedefinitions",), READ, reason),)


def authors(provider: Provider) -> tuple[Permission, ...]:
    """What the author's code needs beyond the contract."""
    return tuple(_authors(rule) for rule in provider.rbac)


def people(component: Component, verbs: tuple[str, ...], reason: str) -> tuple[Permission, ...]:
    """What roles for people hold; nothing where there are no kinds."""
    if not component.resources:
        return ()
    every = groups(component.resources)
    with_status = [r for r in component.resources if not r.role.is_template]
    return (
        Permission(every, plurals(component.resources), verbs, reason),
        Permission(every, plurals(with_status, "/status"), ("get",), "See how they are doing."),
    )


def aggregate_object(resource: Resource) -> tuple[Permission, ...]:
    """What core needs on a kind that it creates and deletes (RB-03, RB-04)."""
    every, plural = (str(resource.group),), str(resource.plural)
    reason = "Core creates, patches and deletes these on behalf of their owners (RB-03)."
    return (
        Permission(every, (plural,), ALL, reason),
        Permission(
            every,
            (f"{plural}/finalizers",),
            ("update",),
            "Owner references to these that block deletion need this (RB-04, RB-05).",
        ),
    )


def aggregate_cloned(resource: Resource) -> tuple[Permission, ...]:
    """What core needs on a template that is cloned again and again (RB-03)."""
    reason = "Core and control planes clone these, and rotate them for topologies (RB-03)."
    return (Permission((str(resource.group),), (str(resource.plural),), ALL, reason),)


def aggregate_class_template(resource: Resource) -> tuple[Permission, ...]:
    """What core needs on a template that only ClusterClasses use (RB-03, RB-05)."""
    verbs = tuple(verb for verb in ALL if verb != "create")
    reason = (
        "ClusterClasses become owners of their templates,"
        " and changing owners needs delete (RB-03, RB-05)."
    )
    return (Permission((str(resource.group),), (str(resource.plural),), verbs, reason),)


def core_objects(*plural: str) -> Permission:
    """Reading core's own objects."""
    reason = "The owners of the provider's objects are read, never written (RB-07)."
    return Permission(("cluster.x-k8s.io",), plural, READ, reason)


def _authors(rule: PolicyRule) -> Permission:
    reason = "The infrastructure code needs it (provider.yaml, rbac)."
    return Permission(rule.api_groups, rule.resources, rule.verbs, reason, rule.resource_names)
