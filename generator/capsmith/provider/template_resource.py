"""Create the resource of a kind's template (CRD-07): what its kind has, but where it has its own.

Rules that compare with the value before are not in a template unless the author wants them: core's
dry runs change templates, and the API server cannot tell those from real changes (IM-14).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from capsmith.cel_text import is_transition
from capsmith.provider.contract_schemas import of_template
from capsmith.provider.control_planes import FIELD as EMBEDDED
from capsmith.provider.crd_options import CrdOptions, categories_of, options_of_template
from capsmith.provider.model import ApiVersion, Field, Resource, Schema
from capsmith.provider.new_resource import columns_of, fields_of, new_resource
from capsmith.provider.templates import template_short_names
from capsmith.provider.version_fields import VersionFields
from capsmith.provider_yaml.plain import plain_name, plain_rule, without_transitions
from capsmith.safetext import DnsLabel

if TYPE_CHECKING:
    from capsmith.provider_yaml.kind_parts import TemplateSpec, TemplateVersionSpec
    from capsmith.provider_yaml.sections import KindSpec


def template_of(
    kind: Resource, described: KindSpec, name: str, versions: tuple[ApiVersion, ...]
) -> Resource:
    """Return the resource of the template of ``kind``, which has the name ``name``."""
    written = None if isinstance(described.template, bool) else described.template
    options = options_of_template(described, written)
    status = fields_of(written.status) if written is not None else ()
    fields, rules = _rules_of(kind.spec_fields, kind.spec_validations, options)
    template = new_resource(
        f"{name}Template",
        kind.role.template,
        group=kind.group,
        versions=versions,
        features=kind.features,
        categories=tuple(DnsLabel(each) for each in categories_of(described, written)),
        provider_type=kind.provider_type,
        spec_fields=fields,
        status_fields=status,
        short_names=tuple(map(DnsLabel, template_short_names(described))),
        spec_validations=rules,
        printer_columns=columns_of(written.printer_columns) if written is not None else (),
    )._replace(contract_fields=of_template(kind.contract_fields, written), options=options)
    if written is not None and written.object_name is not None:
        template = template._replace(name_schema=plain_name(written.object_name))
    template = _with_own(template, written)
    return template._replace(version_fields=_versions(kind, template, written))


def _versions(
    kind: Resource, template: Resource, written: TemplateSpec | None
) -> Mapping[str, VersionFields] | None:
    """Return the parts of the template in the versions where it, or its kind, has others."""
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
    """Return the parts of a template in one version: its own, its kind's or those of the hub."""
    source = of_kind or VersionFields(
        *(kind.spec_fields, kind.status_fields, kind.spec_validations, (), ()),
        contract_fields=kind.contract_fields,
    )
    fields, rules = _rules_of(source.spec_fields, source.spec_validations, template.options)
    if written is not None and written.spec is not None:
        fields = template.spec_fields
    if written is not None and written.validations is not None:
        rules = template.spec_validations
    contract = of_template(source.contract_fields, own, written)
    parts = template._replace(spec_fields=fields, spec_validations=rules, contract_fields=contract)
    parts = _with_own(parts, own)
    options, columns = template.options, template.printer_columns
    if own is not None:
        options = options.with_parts(own.required_parts, own.part_limits)
        if own.printer_columns is not None:
            columns = columns_of(own.printer_columns)
    return VersionFields(
        spec_fields=parts.spec_fields,
        status_fields=template.status_fields,
        spec_validations=parts.spec_validations,
        object_validations=(),
        printer_columns=columns,
        contract_fields=parts.contract_fields,
        options=options,
    )


def _with_own(template: Resource, written: TemplateVersionSpec | None) -> Resource:
    """Return the template with the fields and rules that are only its own, if it has any."""
    if written is None:
        return template
    if written.spec is not None:
        embedded = (field for field in template.spec_fields if field.name == EMBEDDED)
        template = template._replace(spec_fields=(*fields_of(written.spec), *embedded))
    if written.validations is not None:
        rules = tuple(plain_rule(rule) for rule in written.validations)
        template = template._replace(spec_validations=rules)
    return template


def _rules_of(
    fields: Iterable[Field], rules: Iterable[Schema], options: CrdOptions
) -> tuple[tuple[Field, ...], tuple[Schema, ...]]:
    """Return fields and rules of a kind as its template repeats them."""
    if options.transition_rules:
        return tuple(fields), tuple(rules)
    kept = tuple(rule for rule in rules if not is_transition(str(rule["rule"])))
    return tuple(_without_transitions(field) for field in fields), kept


def _without_transitions(field: Field) -> Field:
    return field._replace(schema=without_transitions(field.schema))
