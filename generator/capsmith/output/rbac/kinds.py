"""Select the kinds of a component to which a declared rule applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from capsmith.output.conversion import converted_resources
from capsmith.output.migration import migrated_resources
from capsmith.output.rbac.model import Feature, KindSelector
from capsmith.provider.identities import SECRET_REF
from capsmith.provider.model import Component, Provider, Resource


def selected_kinds(
    selector: KindSelector, provider: Provider, component: Component
) -> tuple[Resource, ...]:
    """Return the kinds of a component that ``selector`` means, in the component's order."""
    return tuple(
        resource
        for resource in component.resources
        if not selector.roles or resource.role in selector.roles
        if all(_FEATURES[name](resource, provider, component) for name in selector.features)
    )


def by_group(resources: Iterable[Resource]) -> dict[str, tuple[Resource, ...]]:
    """Return some kinds by API group, sorted: one RBAC rule for several grants their product."""
    found: dict[str, tuple[Resource, ...]] = {}
    for resource in resources:
        found[str(resource.group)] = (*found.get(str(resource.group), ()), resource)
    return dict(sorted(found.items()))


def plurals(resources: tuple[Resource, ...], subresource: str = "") -> tuple[str, ...]:
    """Return the RBAC resource names of some kinds, or of a subresource of them."""
    suffix = f"/{subresource}" if subresource else ""
    return tuple(sorted(f"{resource.plural}{suffix}" for resource in resources))


def _is_in_pools(resource: Resource, provider: Provider, component: Component) -> bool:
    return resource.kind in {each.machine_kind for each in component.resources}


_FEATURES: Mapping[Feature, Callable[[Resource, Provider, Component], bool]] = {
    "addressesFromPools": lambda resource, *_: "addressesFromPools" in resource.features,
    "capacity": lambda resource, *_: "capacity" in resource.features,
    "clusterScoped": lambda resource, *_: not resource.namespaced,
    "converted": lambda resource, provider, component: (
        resource in converted_resources(component, provider)
    ),
    # Machines that a pool of the component consists of, and pools that consist of no such machines.
    "inPools": _is_in_pools,
    "namespaced": lambda resource, *_: resource.namespaced,
    # Identities that refer to a Secret.
    "withSecret": lambda resource, *_: SECRET_REF in resource.features,
    "withoutMachines": lambda resource, *_: resource.machine_kind is None,
    "migrated": lambda resource, provider, component: (
        resource in migrated_resources(component, provider)
    ),
    # Control planes whose members are Machines, each with a bootstrap configuration.
    "ofMachines": lambda resource, *_: resource.bootstrap is not None,
    "reconciled": lambda resource, *_: not resource.role.is_template,
    "template": lambda resource, *_: resource.role.is_template,
}
