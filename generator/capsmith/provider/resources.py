"""Create the resources for a described kind and its template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from capsmith.cel_text import is_transition, remove_transition_rules
from capsmith.provider.contract_fields import INSTANCE_STATUS
from capsmith.provider.credentials import has_identity_reference
from capsmith.provider.described_kinds import FIELD as EMBEDDED
from capsmith.provider.described_kinds import (
    MACHINES,
    build_bootstrap_field,
    find_instance_status,
    template_short_names,
)
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft, DraftIdentity, DraftKind
from capsmith.provider.fields import (
    ContractFields,
    CrdOptions,
    Field,
    OwnField,
    PrinterColumn,
    Schema,
    VersionFields,
)
from capsmith.provider.model import SECRET_REF, SOURCE_REF, ApiVersion, Resource, Role, Watch
from capsmith.provider.naming import name_attribute, name_attributes, pluralise
from capsmith.provider.sections import SECTION_TYPES
from capsmith.provider_yaml.field_schemas import (
    convert_field,
    convert_name_limits,
    convert_rule,
    is_required,
)
from capsmith.provider_yaml.scale import list_scale_paths
from capsmith.safetext import DnsLabel, DnsSubdomain, KindName, VersionName

if TYPE_CHECKING:
    from capsmith.provider_yaml.forms import FieldLike
    from capsmith.provider_yaml.model import (
        ContractFieldsSpec,
        KindSpec,
        KubectlSpec,
        PrinterColumnSpec,
        TemplateSpec,
        TemplateVersionSpec,
        VersionFieldsSpec,
    )


def convert_contract_fields(written: ContractFieldsSpec | None) -> ContractFields | None:
    """Convert the `contractFields` of a kind in `provider.yaml`; return None if it has none."""
    if written is None:
        return None
    exact = bool(written.exact)
    return ContractFields(
        _fields(written.spec, exact),
        _fields(written.status, exact),
        without=frozenset(written.without or ()),
        paths=dict(written.paths or {}),
    )


def build_template_fields(
    kind: ContractFields | None, *written: TemplateVersionSpec | None
) -> ContractFields | None:
    """Return the contract fields that the author declares for a template, or else for its kind.

    Each setting comes from the first entry in ``written`` that has it.
    """
    described = [each for each in written if each is not None]
    fields = next((each.contract_fields for each in described if each.contract_fields), None)
    metadata = next((each.metadata for each in described if each.metadata is not None), None)
    found = convert_contract_fields(fields) or ContractFields({}, {})
    exact = fields is not None and bool(fields.exact)
    if metadata is not None:
        found = found._replace(metadata=OwnField(convert_field(metadata), False, exact))
    if fields is not None and fields.spec is not None:
        return found._replace(has_own_spec=True)
    if kind is None:
        return found if fields is not None or metadata is not None else None
    of_spec = {path for path in kind.without if path.startswith("spec.")}
    return found._replace(spec=kind.spec, without=found.without | of_spec)


def _fields(fields: Mapping[str, FieldLike] | None, exact: bool) -> dict[str, OwnField]:
    return {
        name: OwnField(convert_field(field), is_required(field), exact)
        for name, field in (fields or {}).items()
    }


# A template has its kind's settings (CRD-07), except where it has its own.  Rules that compare with
# the old value are left out of templates unless the author requests them: core's dry runs change
# templates, and the API server cannot distinguish these from real changes (IM-14).
def build_template(
    kind: Resource, described: KindSpec, name: str, versions: tuple[ApiVersion, ...]
) -> Resource:
    """Build the resource for the template of ``kind``. ``name`` is the kind's name."""
    written = None if isinstance(described.template, bool) else described.template
    options = build_template_options(described, written)
    status = convert_fields(written.status) if written is not None else ()
    fields, rules = _rules_of(kind.spec_fields, kind.spec_validations, options)
    template = create_resource(
        f"{name}Template",
        kind.role.template,
        group=kind.group,
        versions=versions,
        features=kind.features,
        categories=tuple(DnsLabel(each) for each in list_categories(described, written)),
        provider_type=kind.provider_type,
        spec_fields=fields,
        status_fields=status,
        short_names=tuple(map(DnsLabel, template_short_names(described))),
        spec_validations=rules,
        printer_columns=convert_columns(written.printer_columns) if written is not None else (),
    )._replace(
        contract_fields=build_template_fields(kind.contract_fields, written), options=options
    )
    if written is not None and written.object_name is not None:
        template = template._replace(name_schema=convert_name_limits(written.object_name))
    template = _with_own(template, written)
    return template._replace(version_fields=_versions(kind, template, written))


def _versions(
    kind: Resource, template: Resource, written: TemplateSpec | None
) -> Mapping[str, VersionFields] | None:
    """Return the template's fields in the versions that differ for the template or its kind."""
    own = (written.versions if written is not None else None) or {}
    if kind.version_fields is None and not own:
        return None
    of_kind = kind.version_fields or {}
    return {
        version: _version(kind, template, of_kind.get(version), own.get(version), written)
        for version in dict.fromkeys((*of_kind, *own))
    }


def _version(
    kind: Resource,
    template: Resource,
    of_kind: VersionFields | None,
    own: TemplateVersionSpec | None,
    written: TemplateSpec | None,
) -> VersionFields:
    """Return the fields, rules and columns of a template in one version.

    The template's own take precedence, then its kind's, then the storage version's.
    """
    source = of_kind or VersionFields(
        *(kind.spec_fields, kind.status_fields, kind.spec_validations, (), ()),
        contract_fields=kind.contract_fields,
    )
    fields, rules = _rules_of(source.spec_fields, source.spec_validations, template.options)
    if written is not None and written.spec is not None:
        fields = template.spec_fields
    if written is not None and written.validations is not None:
        rules = template.spec_validations
    contract = build_template_fields(source.contract_fields, own, written)
    parts = template._replace(spec_fields=fields, spec_validations=rules, contract_fields=contract)
    parts = _with_own(parts, own)
    options, columns = template.options, template.printer_columns
    status = template.status_fields
    if own is not None:
        status = status if own.status is None else convert_fields(own.status)
        options = options.with_parts(own.required_parts, own.part_limits)
        options = _with_part_fields(options, own)
        if own.printer_columns is not None:
            columns = convert_columns(own.printer_columns)
    return VersionFields(
        spec_fields=parts.spec_fields,
        status_fields=status,
        spec_validations=parts.spec_validations,
        object_validations=(),
        printer_columns=columns,
        contract_fields=parts.contract_fields,
        options=options,
    )


def _with_own(template: Resource, written: TemplateVersionSpec | None) -> Resource:
    """Return the template with the fields and rules that its kind lacks, if there are any."""
    if written is None:
        return template
    if written.spec is not None:
        embedded = (field for field in template.spec_fields if field.name == EMBEDDED)
        template = template._replace(spec_fields=(*convert_fields(written.spec), *embedded))
    if written.validations is not None:
        rules = tuple(convert_rule(rule) for rule in written.validations)
        template = template._replace(spec_validations=rules)
    return template


def _rules_of(
    fields: Iterable[Field], rules: Iterable[Schema], options: CrdOptions
) -> tuple[tuple[Field, ...], tuple[Schema, ...]]:
    """Return the fields and rules of a kind in the form in which its template repeats them."""
    if options.transition_rules:
        return tuple(fields), tuple(rules)
    kept = tuple(rule for rule in rules if not is_transition(str(rule["rule"])))
    return tuple(_without_transitions(field) for field in fields), kept


def _without_transitions(field: Field) -> Field:
    return field._replace(schema=remove_transition_rules(field.schema))


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
    Role.REMEDIATION: "{kind} is a request to remediate one unhealthy machine.",
    Role.REMEDIATION_TEMPLATE: "{kind} is a template that MachineHealthChecks use.",
    Role.RESOURCE: "{kind} is a further resource of the provider.",
    Role.IDENTITY: "{kind} names the Secret with the credentials for the infrastructure.",
}


def create_resource(
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
    """Create a resource with the attributes that every role has.

    Set the other attributes with ``_replace``.
    """
    return Resource(
        kind=KindName(kind),
        role=role,
        group=group,
        plural=DnsLabel(pluralise(kind.lower())),
        singular=DnsLabel(kind.lower()),
        list_kind=KindName(f"{kind}List"),
        module=name_attribute(kind),
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


def convert_fields(fields: Mapping[str, FieldLike] | None) -> tuple[Field, ...]:
    """Convert the author's fields to schemas, each with a unique Python attribute.

    If two names would result in the same attribute, a number is appended.
    """
    written = fields or {}
    return tuple(
        Field(name, attribute, convert_field(written[name]), is_required(written[name]))
        for name, attribute in name_attributes(written).items()
    )


def convert_columns(columns: Sequence[PrinterColumnSpec] | None) -> tuple[PrinterColumn, ...]:
    """Convert the author's printer columns, in the author's order; empty if there are none."""
    return tuple(
        PrinterColumn(c.name, c.type, c.json_path, c.priority, c.description or "")
        for c in columns or ()
    )


Versions = tuple[ApiVersion, ...]
_WITHOUT_SECRET = "{kind} says with which identity the infrastructure is used."


def build_resources(
    kind: DraftKind, draft: Draft, versions: Versions, template_versions: Versions
) -> tuple[Resource, ...]:
    """Return the resource for a kind, followed by its template's resource if it has a template."""
    own = _build_resource(kind, draft, versions)
    if not kind.has_template:
        return (own,)
    return own, build_template(own, kind.spec, kind.name, template_versions)


def _build_resource(kind: DraftKind, draft: Draft, versions: Versions) -> Resource:
    described, role, features = kind.spec, Role(kind.spec.implements), _features(kind, draft)
    resource = create_resource(
        kind.name,
        role,
        group=DnsSubdomain(kind.group),
        versions=versions,
        features=features,
        provider_type=SECTION_TYPES[kind.section].type,
        categories=_labels(list_categories(described)),
        description=described.description,
        short_names=tuple(DnsLabel(name) for name in kind.short_names),
        spec_fields=_spec_fields(described.spec, kind, draft),
        status_fields=convert_fields(described.status),
        spec_validations=tuple(map(convert_rule, described.validations or ())),
        printer_columns=convert_columns(described.printer_columns),
    )._replace(
        bootstrap=kind.bootstrap,
        instance_fields=convert_fields(find_instance_status(described)),
        watches=convert_watches(described, draft),
        webhooks=kind.webhooks,
        object_validations=tuple(map(convert_rule, described.object_validations or ())),
        name_schema=convert_name_limits(described.object_name) if described.object_name else None,
        contract_fields=convert_contract_fields(described.contract_fields),
        options=_build_options(described),
    )
    if MACHINES in features and kind.machine_kind is not None:
        resource = resource._replace(machine_kind=KindName(kind.machine_kind))
    if role is Role.RESOURCE:
        resource = resource._replace(namespaced=kind.namespaced, plural=DnsLabel(kind.plural))
    if described.versions is None:
        return resource
    # Last, because a version repeats everything that it does not mention from the current resource.
    own = {
        version: _version_fields(written, resource, kind, draft)
        for version, written in described.versions.items()
    }
    return resource._replace(version_fields=own)


def _version_fields(
    written: VersionFieldsSpec, resource: Resource, kind: DraftKind, draft: Draft
) -> VersionFields:
    """Return the fields of a version.

    Settings that the version does not mention are taken from the kind.
    """
    spec, status, rules = resource.spec_fields, resource.status_fields, resource.spec_validations
    if written.spec is not None:
        spec = _spec_fields(written.spec, kind, draft)
    if written.status is not None:
        status = convert_fields(written.status)
    if written.validations is not None:
        rules = tuple(convert_rule(rule) for rule in written.validations)
    of_objects = resource.object_validations
    if written.object_validations is not None:
        of_objects = tuple(map(convert_rule, written.object_validations))
    contract = resource.contract_fields
    if written.contract_fields is not None:
        contract = convert_contract_fields(written.contract_fields)
    columns = convert_columns(written.printer_columns)
    if written.printer_columns is None:
        # A column for a field that the version lacks would be empty.
        missing = {f".spec.{name}" for name in _missing_names(resource.spec_fields, spec)}
        missing |= {f".status.{name}" for name in _missing_names(resource.status_fields, status)}
        columns = tuple(
            c for c in resource.printer_columns if _first_keys(c.json_path) not in missing
        )
    options = resource.options.with_parts(written.required_parts, written.part_limits)
    return VersionFields(spec, status, rules, of_objects, columns, contract, options)


def _missing_names(hub: tuple[Field, ...], spoke: tuple[Field, ...]) -> set[str]:
    return {field.name for field in hub} - {field.name for field in spoke}


def _first_keys(path: str) -> str:
    """Return a path up to its first list: ``.spec.size`` for ``.spec.size[0].name``."""
    return ".".join(path.replace("[", ".").split(".")[:3])


def build_identity(identity: DraftIdentity, group: DnsSubdomain, versions: Versions) -> Resource:
    """Build the resource for an identity kind in ``group``."""
    parts = {
        SECRET_REF: identity.secret,
        SOURCE_REF: bool(identity.sources),
        "allowedNamespaces": not identity.namespaced,
    }
    words = WORDS[Role.IDENTITY] if identity.secret else _WITHOUT_SECRET
    return create_resource(
        identity.kind,
        Role.IDENTITY,
        group=group,
        versions=versions,
        features=frozenset(name for name, is_in in parts.items() if is_in),
        categories=_labels(list_categories(None)),
        description=words.format(kind=identity.kind),
        spec_fields=convert_fields(identity.fields),
    )._replace(namespaced=identity.namespaced)


def _spec_fields(
    fields: Mapping[str, FieldLike] | None, kind: DraftKind, draft: Draft
) -> tuple[Field, ...]:
    """Return the fields of the spec, including the embedded bootstrap configuration, if any."""
    own = convert_fields(fields)
    contract = kind.spec.contract_fields
    is_left_out = contract is not None and f"spec.{EMBEDDED}" in (contract.without or ())
    if kind.bootstrap is None or is_left_out:
        return own
    return (*own, build_bootstrap_field(kind.bootstrap, draft))


def _features(kind: DraftKind, draft: Draft) -> frozenset[str]:
    switched = kind.features - {CREDENTIALS_FEATURE}
    if find_instance_status(kind.spec) is not None:
        switched |= {INSTANCE_STATUS}
    return switched | (
        {CREDENTIALS_FEATURE} if has_identity_reference(kind, draft) else frozenset()
    )


def _labels(names: Sequence[str]) -> tuple[DnsLabel, ...]:
    return tuple(DnsLabel(name) for name in names)


def _build_options(described: KindSpec) -> CrdOptions:
    scale = list_scale_paths(described.scale)
    options = CrdOptions(described.contract_columns is not False, scale=scale)
    return options.with_parts(described.required_parts, described.part_limits)


def convert_watches(described: KindSpec, draft: Draft) -> tuple[Watch, ...]:
    """Convert the watches that a kind declares, keeping the author's order."""
    return tuple(
        Watch(
            group=(group := each.api_version.rpartition("/")[0]),
            version=VersionName(each.api_version.rpartition("/")[2]),
            kind=KindName(each.kind),
            plural=DnsLabel(each.resource or draft.find_plural(group, each.kind)),
            namespaced=each.scope != "Cluster",
            path=tuple(each.path.split(".")) if each.path else (),
            label=each.label or "",
        )
        for each in described.watches or ()
    )


_CATEGORY = "cluster-api"


def build_template_options(kind: KubectlSpec, template: TemplateSpec | None) -> CrdOptions:
    """Return the CRD options for a template.

    The kind's setting for ``contract_columns`` applies unless ``template`` sets it.
    """
    if template is None:
        return CrdOptions(contract_columns=kind.contract_columns is not False)
    has_columns = _first(template.contract_columns, kind.contract_columns)
    options = CrdOptions(has_columns, transition_rules=bool(template.transition_rules))
    options = options.with_parts(template.required_parts, template.part_limits)
    return _with_part_fields(options, template)


def _with_part_fields(options: CrdOptions, written: TemplateVersionSpec) -> CrdOptions:
    if written.part_fields is None:
        return options
    fields = {str(part): convert_fields(below) for part, below in written.part_fields.items()}
    return options._replace(part_fields=fields)


def list_categories(kind: KubectlSpec | None, template: KubectlSpec | None = None) -> list[str]:
    """Return the kubectl categories for a kind or its template.

    A template has its kind's categories unless the author sets others.
    """
    sources = [each for each in (template, kind) if each is not None]
    own = next((each.categories for each in sources if each.categories is not None), ())
    is_in = _first(*(each.contract_category for each in sources))
    return list(dict.fromkeys((*((_CATEGORY,) if is_in else ()), *own)))


def _first(*switches: bool | None) -> bool:
    """Return the first switch that is not None, or True if there is none."""
    return next((each for each in switches if each is not None), True)
