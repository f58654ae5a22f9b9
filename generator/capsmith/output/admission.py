"""List the kinds whose objects the author's admission webhooks validate or default."""

from __future__ import annotations

from typing import NamedTuple

from capsmith.provider.model import Component, Provider, Resource, Webhooks
from capsmith.safetext import DnsSubdomain, VersionName


class AdmittedKind(NamedTuple):
    """A kind with admission webhooks."""

    resource: Resource
    template: Resource | None
    """Template resource, if its objects are admitted like the kind's objects; otherwise None."""
    webhooks: Webhooks

    @property
    def name(self) -> DnsSubdomain:
        """Return ``<singular>.<group>``, the suffix of webhook names."""
        return DnsSubdomain(f"{self.resource.singular}.{self.resource.group}")

    @property
    def versions(self) -> tuple[VersionName, ...]:
        """Return the versions in which the API server sends objects to the webhooks.

        The API server converts objects of other versions first (``matchPolicy: Equivalent``),
        because the author's code handles only the fields of the storage version.
        """
        others = self.resource.version_fields or {}
        return tuple(
            version.name
            for version in self.resource.versions
            if version.served and version.name not in others
        )

    @property
    def admitted(self) -> tuple[Resource, ...]:
        """Return the resources whose objects the API server sends to the webhooks."""
        return (self.resource,) if self.template is None else (self.resource, self.template)


def list_admitted_kinds(component: Component) -> tuple[AdmittedKind, ...]:
    """Return the kinds of a component that have admission webhooks."""
    templates = {str(each.kind): each for each in component.resources if each.role.is_template}
    return tuple(
        AdmittedKind(
            resource,
            templates.get(f"{resource.kind}Template") if resource.webhooks.templates else None,
            resource.webhooks,
        )
        for resource in component.resources
        if resource.webhooks is not None
    )


def has_admission(provider: Provider) -> bool:
    """Return whether any kind has admission webhooks."""
    return any(list_admitted_kinds(component) for component in provider.components)
