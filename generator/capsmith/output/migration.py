"""Kinds whose stored objects have several API versions and are migrated by a manager."""

from __future__ import annotations

from capsmith.provider.model import Component, Provider, Resource


def migrated_resources(component: Component, provider: Provider) -> tuple[Resource, ...]:
    """Return the kinds of a component whose stored objects its manager migrates (CRD-16).

    Templates and identities too: no reconcile ever writes them.  A release of an earlier contract
    may have had a version that is gone, and users may upgrade from it directly.
    """
    return tuple(
        resource
        for resource in component.resources
        if len(resource.versions) > 1 or provider.former_contracts
    )


def has_migration(provider: Provider) -> bool:
    """Return whether some manager migrates stored objects."""
    return any(migrated_resources(component, provider) for component in provider.components)
