"""Create the resource of one kind of the description, and that of its template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from capsmith.provider.contract_schemas import contract_fields_of
from capsmith.provider.control_planes import FIELD as EMBEDDED
from capsmith.provider.control_planes import bootstrap_field
from capsmith.provider.crd_options import CrdOptions, categories_of
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft, DraftIdentity, DraftKind
from capsmith.provider.identities import SECRET_REF
from capsmith.provider.model import ApiVersion, Field, Resource, Role
from capsmith.provider.new_resource import WORDS, columns_of, fields_of, new_resource
from capsmith.provider.pools import MACHINES
from capsmith.provider.sections import SECTION_TYPES
from capsmith.provider.template_resource import template_of
from capsmith.provider.version_fields import VersionFields
from capsmith.provider.watches import watches_of
from capsmith.provider_yaml.plain import plain_name, plain_rule
from capsmith.safetext import DnsLabel, DnsSubdomain, KindName

if TYPE_CHECKING:
    from capsmith.provider_yaml.fields import FieldLike
    from capsmith.provider_yaml.sections import VersionFieldsSpec

Versions = tuple[ApiVersion, ...]
_WITHOUT_SECRET = "{kind} says with which identity the infrastructure is used."


def resources_of(
    draft: DraftKind, provider: Draft, versions: Versions, of_template: Versions
) -> tuple[Resource, ...]:
    """Return the resource of a kind and, where the role has one, that of its template."""
    described, role = draft.spec, Role(draft.spec.implements)
    fields = _spec_fields(described.spec, draft, provider)
    rules = tuple(plain_rule(rule) for rule in described.validations or ())
    features = _features(draft, provider)
    common: dict[str, Any] = {
        "group": DnsSubdomain(draft.group),
        "versions": versions,
        "features": features,
        "provider_type": SECTION_TYPES[draft.section].type,
    }
    own = new_resource(
        draft.name,
        role,
        **common,
        categories=_labels(categories_of(described)),
        description=described.description,
        short_names=tuple(DnsLabel(name) for name in draft.short_names),
        spec_fields=fields,
        status_fields=fields_of(described.status),
        spec_validations=rules,
        printer_columns=columns_of(described.printer_columns),
    )
    if MACHINES in features and draft.machine_kind is not None:
        own = own._replace(machine_kind=KindName(draft.machine_kind))
    own = own._replace(
        bootstrap=draft.bootstrap, watches=watches_of(described), webhooks=draft.webhooks
    )
    own = own._replace(
        object_validations=tuple(map(plain_rule, described.object_validations or ())),
        name_schema=plain_name(described.object_name) if described.object_name else None,
        contract_fields=contract_fields_of(described.contract_fields),
        options=CrdOptions(described.contract_columns is not False).with_parts(
            described.required_parts, described.part_limits
        ),
    )
    if described.versions is not None:
        own = own._replace(
            version_fields={
                version: _version_fields(written, own, draft, provider)
                for version, written in described.versions.items()
            }
        )
    if role is Role.RESOURCE:
        own = own._replace(namespaced=draft.namespaced, plural=DnsLabel(draft.plural))
    if not draft.has_template:
        return (own,)
    return own, template_of(own, described, draft.name, of_template)


def _version_fields(
    written: VersionFieldsSpec, kind: Resource, draft: DraftKind, provider: Draft
) -> VersionFields:
    """Return the fields of a version; what it does not mention is as in the kind."""
    spec, status, rules = kind.spec_fields, kind.status_fields, kind.spec_validations
    if written.spec is not None:
        spec = _spec_fields(written.spec, draft, provider)
    if written.status is not None:
        status = fields_of(written.status)
    if written.validations is not None:
        rules = tuple(plain_rule(rule) for rule in written.validations)
    of_objects = kind.object_validations
    if written.object_validations is not None:
        of_objects = tuple(map(plain_rule, written.object_validations))
    contract = kind.contract_fields
    if written.contract_fields is not None:
        contract = contract_fields_of(written.contract_fields)
    columns = columns_of(written.printer_columns)
    if written.printer_columns is None:
        gone = {f".spec.{name}" for name in _gone(kind.spec_fields, spec)}
        gone |= {f".status.{name}" for name in _gone(kind.status_fields, status)}
        columns = tuple(c for c in kind.printer_columns if _first_keys(c.json_path) not in gone)
    options = kind.options.with_parts(written.required_parts, written.part_limits)
    return VersionFields(spec, status, rules, of_objects, columns, contract, options)


def _gone(before: tuple[Field, ...], after: tuple[Field, ...]) -> set[str]:
    return {field.name for field in before} - {field.name for field in after}


def _first_keys(path: str) -> str:
    """Return ``.spec.size`` for ``.spec.size[0].name``."""
    return ".".join(path.replace("[", ".").split(".")[:3])


def identity(draft: DraftIdentity, group: DnsSubdomain, versions: Versions) -> Resource:
    """Return the resource of a kind of identities."""
    parts = {SECRET_REF: draft.secret, "allowedNamespaces": not draft.namespaced}
    words = WORDS[Role.IDENTITY] if draft.secret else _WITHOUT_SECRET
    return new_resource(
        draft.kind,
        Role.IDENTITY,
        group=group,
        versions=versions,
        features=frozenset(name for name, is_in in parts.items() if is_in),
        categories=_labels(categories_of(None)),
        description=words.format(kind=draft.kind),
        spec_fields=fields_of(draft.fields),
    )._replace(namespaced=draft.namespaced)


def _spec_fields(
    fields: Mapping[str, FieldLike] | None, draft: DraftKind, provider: Draft
) -> tuple[Field, ...]:
    """Return the fields of the spec, with that of the embedded bootstrap config, if any."""
    own = fields_of(fields)
    contract = draft.spec.contract_fields
    is_left_out = contract is not None and f"spec.{EMBEDDED}" in (contract.without or ())
    if draft.bootstrap is None or is_left_out:
        return own
    return (*own, bootstrap_field(draft.bootstrap, provider))


def _features(draft: DraftKind, provider: Draft) -> frozenset[str]:
    if not provider.identities or not _sees_identities(draft, provider):
        return draft.features
    return draft.features | {CREDENTIALS_FEATURE}


def _sees_identities(draft: DraftKind, provider: Draft) -> bool:
    """Return whether the manager of a kind reads identities, which are the infrastructure's."""
    sections = next(
        {each.section for each in component}
        for component in provider.components
        if any(each.section == draft.section for each in component)
    )
    return draft.spec.implements != Role.RESOURCE or "infrastructure" in sections


def _labels(names: Sequence[str]) -> tuple[DnsLabel, ...]:
    return tuple(DnsLabel(name) for name in names)
