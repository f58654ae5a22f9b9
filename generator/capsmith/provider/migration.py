"""Kinds whose stored objects know several API versions, which a manager brings to those of now."""

from __future__ import annotations

from capsmith.provider.model import Component, Provider, Resource


def migrated_resources(component: Component, provider: Provider) -> tuple[Resource, ...]:
    """The kinds of a component whose stored objects its manager migrates (CRD-16).

    Templates and identities too: no reconcile ever writes them.  A release of an earlier contract
    may have had a version that is gone, and whoever upgrades from it may leave out those between.
    """
    return tuple(
        resource
        for resource in component.resources
        if len(resource.versions) > 1 or provider.former_contracts
    )


def has_migration(provider: Provider) -> bool:
    """Whether some manager migrates stored objects."""
    return any(migrated_resources(component, provider) for component in provider.components)
