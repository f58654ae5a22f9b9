"""Find identity kinds, kinds that use identities, and kinds that store infrastructure ids."""

from __future__ import annotations

from typing import Final

from capsmith.provider.model import Component, Resource, Role

CREDENTIALS: Final = "credentials"
"""Feature of kinds that refer to an identity."""
IDENTITY_REF: Final = "identityRef"
"""Spec field that names an identity."""
_WITH_IDS: Final = (Role.INFRA_CLUSTER, Role.INFRA_MACHINE, Role.INFRA_MACHINE_POOL, Role.RESOURCE)


def list_standalone_identities(component: Component) -> list[Resource]:
    """Return a component's identity kinds, or none if it includes infrastructure."""
    is_infrastructure = "infrastructure" in component.types
    return [] if is_infrastructure else list(component.role(Role.IDENTITY))


def list_kinds_with_ids(component: Component) -> list[Resource]:
    """Return the kinds that have an external id, account or identity recorded by the manager only.

    These are the kinds with infrastructure of their own, and all others that use identities.
    """
    found = [each for each in component.resources if each.role in _WITH_IDS]
    # A control plane that consists of Machines has no infrastructure of its own.
    found += [each for each in component.role(Role.CONTROL_PLANE) if each.bootstrap is None]
    return found + [each for each in list_identity_users(component) if each not in found]


def list_identity_users(component: Component) -> list[Resource]:
    """Return the kinds that refer to an identity and must keep that reference while provisioned."""
    return [
        each
        for each in component.resources
        if CREDENTIALS in each.features
        and not each.role.is_template
        and each.role is not Role.RESOURCE
    ]


def list_fields_of_machines(pool: Resource, component: Component) -> tuple[str, ...]:
    """Return the names of the fields, including the identity, that machines copy from a pool."""
    shared = component.list_shared_fields(pool)
    machine = component.find_pool_machine(pool)
    has_identities = CREDENTIALS in machine.features and CREDENTIALS in pool.features
    return (*shared, IDENTITY_REF) if has_identities else shared
