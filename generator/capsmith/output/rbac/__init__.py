"""Permissions of a provider: the manager's, those that core aggregates, and roles for users.

The permissions of the library's code are declared beside it, in a ``permissions.yaml`` of each
folder, and evaluated here.  Each permission has a reason, which is printed as a comment above it
and in the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from capsmith.output.rbac.kinds import by_group, plurals
from capsmith.output.rbac.model import (
    Declarations,
    Permission,
    policy_rule,
)
from capsmith.output.rbac.rules import aggregated, granted
from capsmith.output.slices import slices_of
from capsmith.provider.model import Component, PolicyRule, Provider, Resource, Role

__all__ = [
    "Declarations",
    "Permission",
    "aggregate_permissions",
    "client_permissions",
    "editor_permissions",
    "identity_editor_permissions",
    "kubeadm_bootstrap_permissions",
    "manager_permissions",
    "namespace_permissions",
    "policy_rule",
    "viewer_permissions",
]

_READ: Final = ("get", "list", "watch")
_ALL: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_VERSION_IS_READ: Final = (
    "The version of the control plane is read before a machine gets bootstrap data (RB-11)."
)


def manager_permissions(
    provider: Provider, component: Component, declared: Declarations
) -> tuple[Permission, ...]:
    """Return the cluster-wide permissions of a component's manager, the author's rules last."""
    found: list[Permission] = []
    folders = ("reconcile", *slices_of(component), "kube", "migration", "conversion")
    for folder in folders:
        for rule in declared[folder].manager:
            for permission in granted(rule, provider, component):
                # Several parts of a manager may read the same kind, each for its own reason.
                if not any(earlier.includes(permission) for earlier in found):
                    found.append(permission)
    return (*found, *_declared(provider, component))


def client_permissions(
    provider: Provider, component: Component, declared: Declarations
) -> tuple[Permission, ...]:
    """Return what the author's code may request: on own kinds what the manager may, and its own.

    These are part of the manager's permissions.
    """
    kinds, names = by_group(component.resources).keys(), set(plurals(component.resources))
    authors = tuple(_declared(provider, component))
    own = (
        each
        for each in manager_permissions(provider, component, declared)
        if each not in authors and set(each.groups) <= kinds and set(each.resources) <= names
    )
    return (*own, *authors)


def namespace_permissions(
    provider: Provider, component: Component, declared: Declarations
) -> tuple[Permission, ...]:
    """Return the permissions of a component's manager in its own namespace only."""
    folders = ("kube", *slices_of(component))
    rules = (rule for folder in folders for rule in declared[folder].namespace)
    return tuple(found for rule in rules for found in granted(rule, provider, component))


def aggregate_permissions(
    provider: Provider, component: Component, declared: Declarations
) -> tuple[Permission, ...]:
    """Return the permissions of core's and control planes' managers on a component's kinds."""
    rules = [rule for folder in slices_of(component) for rule in declared[folder].aggregate]
    return tuple(aggregated(rules, provider, component))


def kubeadm_bootstrap_permissions(component: Component) -> tuple[Permission, ...]:
    """Return what kubeadm's bootstrap manager may do with the control planes of a component.

    Empty if the component has none.  No label can bring these permissions, as the manager's
    ClusterRole aggregates no other one (RB-11).
    """
    control_planes = component.role(Role.CONTROL_PLANE)
    return tuple(
        Permission((group,), plurals(kinds), ("get",), _VERSION_IS_READ)
        for group, kinds in by_group(control_planes).items()
    )


def viewer_permissions(component: Component) -> tuple[Permission, ...]:
    """Return the permissions of users who only read."""
    return tuple(_people(component.resources, _READ, "Read the provider's objects."))


def editor_permissions(component: Component) -> tuple[Permission, ...]:
    """Return the permissions of users who read and write, except for identities: those they read.

    Who writes an identity decides which namespaces use its credentials.
    """
    identities = _identities(component)
    others = tuple(each for each in component.resources if each not in identities)
    return (
        *_people(others, _ALL, "Create, change and delete the provider's objects."),
        *_people(identities, _READ, "Read the identities that clusters may use."),
    )


def identity_editor_permissions(component: Component) -> tuple[Permission, ...]:
    """Return the permissions of users who manage identities; empty if there are none."""
    return tuple(_people(_identities(component), _ALL, "Create, change and delete identities."))


def _identities(component: Component) -> tuple[Resource, ...]:
    return tuple(each for each in component.resources if each.role is Role.IDENTITY)


def _people(
    resources: tuple[Resource, ...], verbs: tuple[str, ...], reason: str
) -> Iterator[Permission]:
    for group, kinds in by_group(resources).items():
        reconciled = tuple(each for each in kinds if not each.role.is_template)
        yield Permission((group,), plurals(kinds), verbs, reason)
        yield Permission((group,), plurals(reconciled, "status"), ("get",), "Read their status.")


def _declared(provider: Provider, component: Component) -> Iterator[Permission]:
    """Yield what the author declares: each watched kind once, then the rules."""
    watches = {
        (watch.group, watch.plural): resource.kind
        for resource in reversed(component.resources)
        for watch in reversed(resource.watches)
    }
    for (group, plural), kind in reversed(watches.items()):
        reason = f"Changes of these lead to a reconcile of {kind} (provider.yaml, watches)."
        yield Permission((group,), (plural,), _READ, reason)
    yield from (_authors(rule) for rule in provider.rbac)


def _authors(rule: PolicyRule) -> Permission:
    reason = "The infrastructure code needs it (provider.yaml, rbac)."
    return Permission(rule.api_groups, rule.resources, rule.verbs, reason, rule.resource_names)
