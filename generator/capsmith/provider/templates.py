"""Which kinds have a template kind (CRD-07), and what a provider cannot do without."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capsmith.provider.model import Component, Resource
    from capsmith.provider_yaml.model import KindSpec, ProviderSpec

TOPOLOGY_FLAVOR = "topology"
"""The flavor whose cluster template uses the first ClusterClass."""
WITHOUT_TEMPLATE = frozenset({"IPPool", "GlobalIPPool", "Addon", "Resource"})
"""Roles whose kinds come without a template kind."""
_OF_CLASSES = frozenset({"InfraCluster", "ControlPlane"})
"""Roles of which each ClusterClass names a template."""


def has_template(described: KindSpec) -> bool:
    """Return whether capsmith adds a template kind."""
    return described.implements not in WITHOUT_TEMPLATE and described.template is not False


def supports_classes(spec: ProviderSpec) -> bool:
    """Return whether ClusterClasses can use all kinds of clusters and control planes."""
    return all(
        described.template is not False
        for _, _, described in spec.kinds()
        if described.implements in _OF_CLASSES
    )


def template_short_names(described: KindSpec) -> tuple[str, ...]:
    """Return the short names of a kind's template."""
    template = described.template
    names = () if template is None or isinstance(template, bool) else template.short_names
    return names or ()


def template_of(kind: Resource, component: Component) -> Resource | None:
    """Return the resource of a kind's template, if the component has one."""
    templates = component.role(kind.role.template)
    return next((each for each in templates if each.kind == f"{kind.kind}Template"), None)
