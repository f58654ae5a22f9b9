"""The variables of the cluster templates, which the README of a provider explains."""

from __future__ import annotations

from collections.abc import Iterator

from capsmith.output.clusterctl import TemplateVariable, build_template_variable
from capsmith.output.topology import Topology, build_topology
from capsmith.provider.model import Provider, Resource, Role


def list_template_variables(provider: Provider) -> Iterator[TemplateVariable]:
    """Yield the variables with defaults in the generated cluster templates, ordered by kind."""
    used = {
        kind.kind: kind
        for component in provider.components
        if component.role(Role.INFRA_CLUSTER)
        for flavor in ("", *provider.flavors)
        for kind in _list_kinds(build_topology(component, provider, flavor))
    }
    for resource in provider.resources:
        for field in used[resource.kind].spec_fields if resource.kind in used else ():
            variable = build_template_variable(field, resource) if field.required else None
            if variable is not None:
                yield variable


def _list_kinds(topology: Topology) -> Iterator[Resource]:
    """Yield the kinds of a cluster template, with the fields that it sets."""
    yield topology.cluster
    if topology.machine is not None and topology.machine_template is not None:
        # The template may require more fields than the kind.
        yield topology.machine._replace(spec_fields=topology.machine_template.spec_fields)
    owned = (topology.control_plane, topology.bootstrap, topology.pool)
    yield from (each.object for each in owned if each is not None)
