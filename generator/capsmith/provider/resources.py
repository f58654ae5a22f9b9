"""Create the resource of one kind of the description, and that of its template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from capsmith.cel_text import is_transition
from capsmith.provider.control_planes import bootstrap_field
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft, DraftIdentity, DraftKind
from capsmith.provider.model import (
    SECRET_REF,
    ApiVersion,
    Field,
    PrinterColumn,
    Resource,
    Role,
    Schema,
)
from capsmith.provider.naming import attribute, pluralise
from capsmith.provider.pools import MACHINES
from capsmith.provider.sections import SECTION_TYPES
from capsmith.provider.watches import watches_of
from capsmith.provider_yaml.plain import is_required, plain, plain_rule, without_transitions
from capsmith.safetext import DnsLabel, DnsSubdomain, KindName

if TYPE_CHECKING:
    from capsmith.provider_yaml.fields import FieldLike
    from capsmith.provider_yaml.sections import KindSpec

Versions = tuple[ApiVersion, ...]
_WORDS = {
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
    Role.RESOURCE: "{kind} is a further resource of the infrastructure.",
    Role.IDENTITY: "{kind} names the Secret with the credentials for the infrastructure.",
}
_WITHOUT_SECRET = "{kind} says with which identity the infrastructure is used."


def resources_of(draft: DraftKind, provider: Draft, versions: Versions) -> tuple[Resource, ...]:
    """Return the resource of a kind and, where the role has one, that of its template (CRD-07).

    Rules that compare with the value before are not in the template: core's dry runs change
    templates, and the API server cannot tell those from real changes (IM-14).
    """
    described, role = draft.spec, Role(draft.spec.implements)
    fields = _spec_fields(draft, provider)
    rules = tuple(plain_rule(rule) for rule in described.validations or ())
    features = _features(draft, provider)
    common: dict[str, Any] = {
        "group": DnsSubdomain(provider.groups[draft.section]),
        "versions": versions,
        "features": features,
        "categories": _categories(described),
        "provider_type": SECTION_TYPES[draft.section].type,
    }
    own = _resource(
        draft.name,
        role,
        **common,
        description=described.description,
        short_names=tuple(DnsLabel(name) for name in draft.short_names),
        spec_fields=fields,
        status_fields=_fields(described.status),
        spec_validations=rules,
        printer_columns=_columns(described),
    )
    if MACHINES in features and draft.machine_kind is not None:
        own = own._replace(machine_kind=KindName(draft.machine_kind))
    own = own._replace(
        bootstrap=draft.bootstrap, watches=watches_of(described), webhooks=draft.webhooks
    )
    if role is Role.RESOURCE:
        own = own._replace(namespaced=draft.namespaced)
    if not draft.has_template:
        return (own,)
    template = _resource(
        f"{draft.name}Template",
        role.template,
        **common,
        spec_fields=tuple(_without_transitions(field) for field in fields),
        spec_validations=tuple(rule for rule in rules if not is_transition(rule["rule"])),
    )
    return own, template


def identity(draft: DraftIdentity, group: DnsSubdomain, versions: Versions) -> Resource:
    """Return the resource of a kind of identities."""
    parts = {SECRET_REF: draft.secret, "allowedNamespaces": not draft.namespaced}
    words = _WORDS[Role.IDENTITY] if draft.secret else _WITHOUT_SECRET
    return _resource(
        draft.kind,
        Role.IDENTITY,
        group=group,
        versions=versions,
        features=frozenset(name for name, is_in in parts.items() if is_in),
        categories=_categories(None),
        description=words.format(kind=draft.kind),
        spec_fields=_fields(draft.fields),
    )._replace(namespaced=draft.namespaced)


def _resource(
    kind: str,
    role: Role,
    *,
    group: DnsSubdomain,
    versions: Versions,
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
        description=(description or _WORDS[role].format(kind=kind)).strip(),
        spec_fields=spec_fields,
        status_fields=status_fields,
        spec_validations=spec_validations,
        printer_columns=printer_columns,
        features=features,
        versions=versions,
        provider_type=provider_type,
    )


def _spec_fields(draft: DraftKind, provider: Draft) -> tuple[Field, ...]:
    """Return the fields of the spec, with that of the embedded bootstrap config, if any."""
    own = _fields(draft.spec.spec)
    if draft.bootstrap is None:
        return own
    return (*own, bootstrap_field(draft.bootstrap, provider))


def _fields(fields: Mapping[str, FieldLike] | None) -> tuple[Field, ...]:
    return tuple(
        Field(name, attribute(name), plain(field), is_required(field))
        for name, field in (fields or {}).items()
    )


def _without_transitions(field: Field) -> Field:
    return Field(field.name, field.attribute, without_transitions(field.schema), field.required)


def _features(draft: DraftKind, provider: Draft) -> frozenset[str]:
    if not provider.identities:
        return draft.features
    return draft.features | {CREDENTIALS_FEATURE}


def _categories(described: KindSpec | None) -> tuple[DnsLabel, ...]:
    own = (described.categories or ()) if described is not None else ()
    return tuple(DnsLabel(name) for name in dict.fromkeys(("cluster-api", *own)))


def _columns(described: KindSpec) -> tuple[PrinterColumn, ...]:
    return tuple(
        PrinterColumn(c.name, c.type, c.json_path, c.priority, c.description or "")
        for c in described.printer_columns or ()
    )
