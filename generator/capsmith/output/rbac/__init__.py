"""Permissions for a provider's managers, for core (by aggregation) and for users.

Each folder in the runtime library declares the permissions that its code needs in a
``permissions.yaml``, and this module evaluates these declarations.  Each permission has a reason,
which appears as a comment above it and in the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from string import Template
from typing import Final

from capsmith.output.crd import build_status_schema
from capsmith.output.rbac.model import (
    Declarations,
    DeclaredRule,
    Feature,
    KindSelector,
    Permission,
    build_policy_rule,
)
from capsmith.output.slices import list_slices
from capsmith.output.webhooks import list_converted_resources, list_migrated_resources
from capsmith.provider.model import (
    SECRET_REF,
    WORKLOAD_CLIENT,
    Component,
    PolicyRule,
    Provider,
    Resource,
    Role,
)


def select_kinds(
    selector: KindSelector, provider: Provider, component: Component
) -> tuple[Resource, ...]:
    """Return a component's kinds that match ``selector``, in the order of its resources."""
    return tuple(
        resource
        for resource in component.resources
        if not selector.roles or resource.role in selector.roles
        if all(_FEATURES[name](resource, provider, component) for name in selector.features)
    )


def group_kinds(resources: Iterable[Resource]) -> dict[str, tuple[Resource, ...]]:
    """Return kinds by API group, sorted by group.

    Groups are kept separate, because an RBAC rule that lists several groups grants access to each
    resource name in all of them.
    """
    found: dict[str, tuple[Resource, ...]] = {}
    for resource in resources:
        found[str(resource.group)] = (*found.get(str(resource.group), ()), resource)
    return dict(sorted(found.items()))


def list_plurals(resources: tuple[Resource, ...], subresource: str = "") -> tuple[str, ...]:
    """Return the kinds' sorted plural names for RBAC rules, with ``/subresource`` if given."""
    suffix = f"/{subresource}" if subresource else ""
    return tuple(sorted(f"{resource.plural}{suffix}" for resource in resources))


def _is_in_pools(resource: Resource, provider: Provider, component: Component) -> bool:
    return resource.kind in {each.machine_kind for each in component.resources}


_FEATURES: Mapping[Feature, Callable[[Resource, Provider, Component], bool]] = {
    "addressesFromPools": lambda resource, *_: "addressesFromPools" in resource.features,
    "capacity": lambda resource, *_: "capacity" in resource.features,
    "clusterScoped": lambda resource, *_: not resource.namespaced,
    "converted": lambda resource, provider, component: (
        resource in list_converted_resources(component, provider)
    ),
    # Machines of which a pool in the component consists, and pools that do not consist of such
    # machines.
    "inPools": _is_in_pools,
    "namespaced": lambda resource, *_: resource.namespaced,
    # Identities that refer to a Secret.
    "withSecret": lambda resource, *_: SECRET_REF in resource.features,
    # Kinds with the subresource in any version.
    "withStatus": lambda resource, *_: any(
        build_status_schema(resource, version) is not None for version in resource.versions
    ),
    "withoutMachines": lambda resource, *_: resource.machine_kind is None,
    "migrated": lambda resource, provider, component: (
        resource in list_migrated_resources(component, provider)
    ),
    # Control planes whose members are Machines, each with a bootstrap configuration.
    "ofMachines": lambda resource, *_: resource.bootstrap is not None,
    "reconciled": lambda resource, *_: not resource.role.is_template,
    "template": lambda resource, *_: resource.role.is_template,
    "workloadClient": lambda resource, *_: WORKLOAD_CLIENT in resource.features,
}


def grant_rule(
    rule: DeclaredRule, provider: Provider, component: Component
) -> tuple[Permission, ...]:
    """Return the permissions that a component's manager gets from a declared rule.

    If the rule selects kinds, there is one permission for each of their API groups; if it names
    groups, there is only one.  The result is empty if the manager does not need the rule.
    """
    if not _applies(rule, provider, component):
        return ()
    if rule.kinds is not None:
        return tuple(_on_kinds(rule, select_kinds(rule.kinds, provider, component)))
    values = _values(provider, component)
    permission = Permission(
        _expanded(rule.groups, values),
        rule.resources,
        rule.verbs,
        rule.reason,
        _expanded(rule.names, values),
    )
    return (permission,)


def aggregate_rules(
    rules: Sequence[DeclaredRule], provider: Provider, component: Component
) -> Iterator[Permission]:
    """Yield a permission for each kind that a rule selects, in the component's order."""
    needed = [rule for rule in rules if _applies(rule, provider, component)]
    for resource in component.resources:
        for rule in needed:
            if rule.kinds and resource in select_kinds(rule.kinds, provider, component):
                yield from _on_kinds(rule, (resource,))


def _applies(rule: DeclaredRule, provider: Provider, component: Component) -> bool:
    return rule.when is None or bool(select_kinds(rule.when, provider, component))


def _on_kinds(rule: DeclaredRule, kinds: tuple[Resource, ...]) -> Iterator[Permission]:
    # One rule for each group, because a rule for several groups would grant every plural in every
    # group.
    for group, of_group in group_kinds(kinds).items():
        yield Permission(
            (group,), list_plurals(of_group, rule.subresource), rule.verbs, rule.reason
        )


def _values(provider: Provider, component: Component) -> Mapping[str, Sequence[str]]:
    return {
        "bootstrap_group": [
            str(each.bootstrap.group) for each in component.resources if each.bootstrap
        ],
        "migrated_crd": [
            str(each.crd_name) for each in list_migrated_resources(component, provider)
        ],
        "namespace": [str(component.namespace)],
        "provider": [str(provider.name)],
    }


def _expanded(texts: Sequence[str], values: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the strings with placeholders replaced by each of their values, sorted."""
    found: set[str] = set()
    for text in texts:
        name, *_ = Template(text).get_identifiers() or [""]
        found |= {Template(text).substitute({name: value}) for value in values.get(name, [""])}
    return tuple(sorted(found))


__all__ = [
    "Declarations",
    "Permission",
    "aggregate_permissions",
    "build_policy_rule",
    "list_client_permissions",
    "list_editor_permissions",
    "list_identity_editor_permissions",
    "list_kubeadm_bootstrap_permissions",
    "list_manager_permissions",
    "list_namespace_permissions",
    "list_viewer_permissions",
]

_READ: Final = ("get", "list", "watch")
_ALL: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_VERSION_IS_READ: Final = (
    "The version of the control plane is read before a machine gets bootstrap data (RB-11)."
)


def list_manager_permissions(
    provider: Provider, component: Component, declared: Declarations
) -> tuple[Permission, ...]:
    """Return the cluster-wide permissions of a component's manager; the author's come last."""
    found: list[Permission] = []
    # In a fixed order, because only the first of several reasons for a permission is printed.
    folders = ("reconcile", *list_slices(component), "kube", "migration", "conversion")
    for folder in folders:
        for rule in declared[folder].manager:
            for permission in grant_rule(rule, provider, component):
                # Several parts of a manager may read the same kind, each for its own reason.
                if not any(earlier.includes(permission) for earlier in found):
                    found.append(permission)
    return (*found, *_declared(provider, component))


def list_client_permissions(
    provider: Provider, component: Component, declared: Declarations
) -> tuple[Permission, ...]:
    """Return the permissions for the author's code, which are a subset of the manager's.

    They cover the component's own kinds, and include the author's rules.
    """
    kinds, names = group_kinds(component.resources).keys(), set(list_plurals(component.resources))
    authors = tuple(_declared(provider, component))
    own = (
        each
        for each in list_manager_permissions(provider, component, declared)
        if each not in authors and set(each.groups) <= kinds and set(each.resources) <= names
    )
    return (*own, *authors)


def list_namespace_permissions(
    provider: Provider, component: Component, declared: Declarations
) -> tuple[Permission, ...]:
    """Return the permissions that a component's manager needs only in its own namespace."""
    folders = ("kube", *list_slices(component))
    rules = (rule for folder in folders for rule in declared[folder].namespace)
    return tuple(found for rule in rules for found in grant_rule(rule, provider, component))


def aggregate_permissions(
    provider: Provider, component: Component, declared: Declarations
) -> tuple[Permission, ...]:
    """Return the permissions on a component's kinds that other managers get by aggregation.

    The other managers are core's and those of control plane providers.
    """
    rules = [rule for folder in list_slices(component) for rule in declared[folder].aggregate]
    return tuple(aggregate_rules(rules, provider, component))


def list_kubeadm_bootstrap_permissions(component: Component) -> tuple[Permission, ...]:
    """Return the permissions on a component's control planes for kubeadm's bootstrap manager.

    Empty if the component has no control planes.  The permissions must be granted with a binding,
    because that manager's ClusterRole does not aggregate others by label (RB-11).
    """
    control_planes = component.role(Role.CONTROL_PLANE)
    return tuple(
        Permission((group,), list_plurals(kinds), ("get",), _VERSION_IS_READ)
        for group, kinds in group_kinds(control_planes).items()
    )


def list_viewer_permissions(component: Component) -> tuple[Permission, ...]:
    """Return the permissions for users with read-only access."""
    return tuple(_people(component.resources, _READ, "Read the provider's objects."))


def list_editor_permissions(component: Component) -> tuple[Permission, ...]:
    """Return the permissions for users who may read all kinds, and write all except identities.

    Identities are excluded because users with write access to an identity decide which namespaces
    may use its credentials.
    """
    identities = _identities(component)
    others = tuple(each for each in component.resources if each not in identities)
    return (
        *_people(others, _ALL, "Create, change and delete the provider's objects."),
        *_people(identities, _READ, "Read the identities that clusters may use."),
    )


def list_identity_editor_permissions(component: Component) -> tuple[Permission, ...]:
    """Return the permissions for users who manage identities; empty if there are no identities."""
    return tuple(_people(_identities(component), _ALL, "Create, change and delete identities."))


def _identities(component: Component) -> tuple[Resource, ...]:
    return tuple(each for each in component.resources if each.role is Role.IDENTITY)


def _people(
    resources: tuple[Resource, ...], verbs: tuple[str, ...], reason: str
) -> Iterator[Permission]:
    for group, kinds in group_kinds(resources).items():
        reconciled = tuple(each for each in kinds if not each.role.is_template)
        yield Permission((group,), list_plurals(kinds), verbs, reason)
        yield Permission(
            (group,), list_plurals(reconciled, "status"), ("get",), "Read their status."
        )


def _declared(provider: Provider, component: Component) -> Iterator[Permission]:
    """Yield the permissions that the author declares: each watched kind once, then the rules."""
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
