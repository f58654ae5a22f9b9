"""Kinds whose stored objects may be in several API versions, which a manager brings to one."""

from __future__ import annotations

from capsmith.provider.model import Component, Provider, Resource


def migrated_resources(component: Component) -> tuple[Resource, ...]:
    """The kinds of a component whose stored objects its manager migrates (CRD-16).

    Templates and identities too: no reconcile ever writes them.
    """
    return tuple(resource for resource in component.resources if len(resource.versions) > 1)


def has_migration(provider: Provider) -> bool:
    """Whether some manager migrates stored objects."""
    return any(migrated_resources(component) for component in provider.components)
