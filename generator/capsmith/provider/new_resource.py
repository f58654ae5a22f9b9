"""Create a resource from checked names and from the parts that an author describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from capsmith.provider.model import ApiVersion, Field, PrinterColumn, Resource, Role, Schema
from capsmith.provider.naming import attribute, attributes, pluralise
from capsmith.provider_yaml.plain import is_required, plain
from capsmith.safetext import DnsLabel, DnsSubdomain, KindName

if TYPE_CHECKING:
    from capsmith.provider_yaml.fields import FieldLike
    from capsmith.provider_yaml.kind_parts import PrinterColumnSpec

WORDS = {
    Role.INFRA_CLUSTER: "{kind} is the infrastructure of one cluster.",
    Role.INFRA_MACHINE: "{kind} is the infrastructure of one machine.",
    Role.INFRA_CLUSTER_TEMPLATE: "{kind} is a template that ClusterClasses use.",
    Role.INFRA_MACHINE_TEMPLATE: "{kind} is a template from which machines are created.",
    Role.INFRA_MACHINE_POOL: "{kind} is the infrastructure of a pool of machines.",
    Role.INFRA_MACHINE_POOL_TEMPLATE: "{kind} is a template from which machine pools are created.",
    Role.BOOTSTRAP_CONFIG: "{kind} defines how a machine becomes a Node.",
    Role.BOOTSTRAP_CONFIG_TEMPLATE: "{kind} is a template of bootstrap configs.",
    Role.CONTROL_PLANE: "{kind} is the control plane of one cluster.",
    Role.CONTROL_PLANE_TEMPLATE: "{kind} is a template that ClusterClasses use.",
    Role.IP_POOL: "{kind} is a pool of IP addresses.",
    Role.GLOBAL_IP_POOL: "{kind} is a pool of IP addresses for all namespaces.",
    Role.ADDON: "{kind} is an add-on that is installed on selected clusters.",
    Role.RESOURCE: "{kind} is a further resource of the provider.",
    Role.IDENTITY: "{kind} names the Secret with the credentials for the infrastructure.",
}


def new_resource(
    kind: str,
    role: Role,
    *,
    group: DnsSubdomain,
    versions: tuple[ApiVersion, ...],
    features: frozenset[str],
    categories: tuple[DnsLabel, ...],
    description: str | None = None,
    short_names: tuple[DnsLabel, ...] = (),
    spec_fields: tuple[Field, ...] = (),
    status_fields: tuple[Field, ...] = (),
    spec_validations: tuple[Schema, ...] = (),
    printer_columns: tuple[PrinterColumn, ...] = (),
    provider_type: str = "infrastructure",
) -> Resource:
    """Return a resource; what else it has is set with ``_replace``."""
    return Resource(
        kind=KindName(kind),
        role=role,
        group=group,
        plural=DnsLabel(pluralise(kind.lower())),
        singular=DnsLabel(kind.lower()),
        list_kind=KindName(f"{kind}List"),
        module=attribute(kind),
        namespaced=versions[0].contract.types[role].scope == "Namespaced",
        short_names=short_names,
        categories=categories,
        description=(description or WORDS[role].format(kind=kind)).strip(),
        spec_fields=spec_fields,
        status_fields=status_fields,
        spec_validations=spec_validations,
        printer_columns=printer_columns,
        features=features,
        versions=versions,
        provider_type=provider_type,
    )


def fields_of(fields: Mapping[str, FieldLike] | None) -> tuple[Field, ...]:
    """Return the author's fields with plain schemas; a second one of a name gets a number."""
    written = fields or {}
    return tuple(
        Field(name, attribute, plain(written[name]), is_required(written[name]))
        for name, attribute in attributes(written).items()
    )


def columns_of(columns: Sequence[PrinterColumnSpec] | None) -> tuple[PrinterColumn, ...]:
    """Return the author's columns."""
    return tuple(
        PrinterColumn(c.name, c.type, c.json_path, c.priority, c.description or "")
        for c in columns or ()
    )
