"""Check CEL rules, and limits on parts of objects, against the provider's CRDs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from capsmith.cel_text import is_transition
from capsmith.findings import Finding
from capsmith.output.crd import build_spec_schema, build_version_schema
from capsmith.output.samples import sample_spec
from capsmith.output.zero_values import build_zero
from capsmith.provider.contract_fields import RECORDED
from capsmith.provider.model import ApiVersion, Provider, Resource
from capsmith.provider_yaml.model import TemplateSpec, TemplateVersionSpec
from capsmith.provider_yaml.rules import check_expressions
from capsmith.provider_yaml.structural import check_limits
from capsmith.provider_yaml.values import find_value_errors
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import quote, suggest

if TYPE_CHECKING:
    from capsmith.provider_yaml.forms import Validation
    from capsmith.provider_yaml.model import KindSpec, ProviderSpec, VersionFieldsSpec

    _Source = KindSpec | VersionFieldsSpec | TemplateSpec | TemplateVersionSpec
    from collections.abc import Mapping

    from capsmith.provider_yaml.model import KindSpec, PartLimits

_OF_SPEC: Final = "validations"


_KEYS: Final = {_OF_SPEC: "validations", "objectValidations": "object_validations"}
"""Keys under which a kind has rules, with their attributes."""


def check_kind_rules(spec: ProviderSpec, provider: Provider, top: PathReporter) -> None:
    """Compile each kind's CEL rules against every CRD schema that contains them.

    Every schema matters: versions may have different fields, and a template has only some of its
    kind's fields.  The finding ids are the same as for rules on fields.
    """
    for section, kind, described in spec.kinds():
        here = top.at(section, kind)
        for resource in provider.resources:
            if str(resource.kind) in (kind, f"{kind}Template"):
                for version in resource.versions:
                    for key in _KEYS:
                        _check(key, described, resource, version, here)


def _check(
    key: str, described: KindSpec, resource: Resource, version: ApiVersion, here: PathReporter
) -> None:
    """Compile the rules under ``key`` in one version: the version's own, or else the kind's."""
    template = described.template if resource.role.is_template else None
    if isinstance(template, TemplateSpec) and key == _OF_SPEC:
        sources: list[_Source] = [template, *_of_version(template, version)]
        if any(each.validations is not None for each in sources):
            _check_sources(key, sources, resource, version, here.at("template"))
            return
    _check_sources(key, [described, *_of_version(described, version)], resource, version, here)


def _of_version(described: KindSpec | TemplateSpec, version: ApiVersion) -> list[_Source]:
    own = (described.versions or {}).get(version.name)
    return [] if own is None else [own]


def _check_sources(
    key: str, sources: list[_Source], resource: Resource, version: ApiVersion, here: PathReporter
) -> None:
    """Compile the rules of a version, or else the rules of the kind.

    ``sources`` are the kind's entry and, if there is one, the version's entry.
    """
    first, *own = sources
    written = getattr(own[0], _KEYS[key], None) if own else None
    if written is not None:
        here = here.at("versions", version.name)
    # Templates have no rules on whole objects, and most have no transition rules: see spec_schema.
    kept = [
        (index, rule)
        for index, rule in enumerate(written or getattr(first, _KEYS[key]) or ())
        if not resource.role.is_template or _is_in_template(key, rule, resource)
    ]
    if not kept or written == ():
        return
    # The findings from here on are about these rules; the version is added to their messages below.
    before = len(here.findings)
    read = _spec_schema if key == _OF_SPEC else _object_schema
    check_expressions(kept, read(resource, version), here.at(key))
    if own and written is None:
        _name_version(here.findings, before, key, version)


def _spec_schema(resource: Resource, version: ApiVersion) -> dict[str, Any]:
    """Return the schema of the spec without the manager's records, which authors do not read."""
    schema = build_spec_schema(resource, version)
    own = {field.name for field in resource.spec_fields}
    read = {k: v for k, v in schema["properties"].items() if k != RECORDED or k in own}
    return {**schema, "properties": read}


def _is_in_template(key: str, rule: Validation, resource: Resource) -> bool:
    is_kept = resource.options.transition_rules or not is_transition(rule.rule)
    return key == _OF_SPEC and is_kept


def _name_version(findings: list[Finding], first: int, key: str, version: ApiVersion) -> None:
    """Add the version's name to the findings from index ``first`` on.

    Used for a rule of the kind that is invalid for the version's own fields.
    """
    for index, finding in enumerate(findings[first:], first):
        findings[index] = finding._replace(
            message=f"in {version.name}, {finding.message}",
            hint=f"Give {version.name} its own `{key}`, which may be an empty list.",
        )


def _object_schema(resource: Resource, version: ApiVersion) -> dict[str, Any]:
    """Return the schema of whole objects in the form that rules see."""
    schema = build_version_schema(resource, version)
    names = {name: {"type": "string"} for name in ("name", "generateName")}
    metadata = {"metadata": {"type": "object", "properties": names}}
    return {**schema, "properties": {**schema["properties"], **metadata}}


_STATUS = "status"


_RULES = "x-kubernetes-validations"


def check_part_limits(spec: ProviderSpec, provider: Provider, top: PathReporter) -> None:
    """Report limits on a spec or status that the manager itself would violate when it writes.

    Ids: ``part-limits-required``, ``part-limits-zero``, ``schema-bounds``, ``schema-default`` and
    the ids of rules.
    """
    resources = {str(resource.kind): resource for resource in provider.resources}
    for section, kind, described in spec.kinds():
        _check_limits_of_versions(described, resources[kind], provider, top.at(section, kind))
        if isinstance(described.template, TemplateSpec):
            template = resources[f"{kind}Template"]
            _check_limits_of_versions(
                described.template, template, provider, top.at(section, kind, "template")
            )


def _check_limits_of_versions(
    described: KindSpec | TemplateSpec,
    resource: Resource,
    provider: Provider,
    reporter: PathReporter,
) -> None:
    stored = resource.storage_version
    _check_limits(described.part_limits, resource, stored, reporter)
    _check_sample(described.part_limits, resource, provider, reporter)
    versions = {str(each.name): each for each in resource.versions}
    for name, written in (described.versions or {}).items():
        if name in versions:
            _check_limits(
                written.part_limits, resource, versions[name], reporter.at("versions", name)
            )


def _check_limits(
    limits: Mapping[Any, PartLimits] | None,
    resource: Resource,
    version: ApiVersion,
    reporter: PathReporter,
) -> None:
    schema = build_version_schema(resource, version)
    for part, written in (limits or {}).items():
        here, found = reporter.at("partLimits", part), schema
        for step in part.split("."):
            found = found.get("properties", {}).get(step, {})
        check_limits(found, here)
        if "default" in written.model_fields_set:
            _check_default(written.default, found, here)
        check_expressions(list(enumerate(written.validations or ())), found, here.at(_RULES))
        if written.required is not None and part != _STATUS:
            message = f"the required fields of {quote(part)} are marked on the fields themselves"
            here.add_error_at_key(
                "part-limits-required", message, "Set `required: true` on the field.", "required"
            )
        elif written.required is not None:
            for index, name in enumerate(written.required):
                _check_required(name, found.get("properties", {}), here.at("required", index))


def _check_default(value: Any, schema: Mapping[str, Any], reporter: PathReporter) -> None:
    for path, why in find_value_errors(value, schema):
        hint = "Write a value that the part itself allows."
        reporter.add_error(
            "schema-default", f"the default is invalid: {why}", hint, "default", *path
        )


def _check_sample(
    limits: Mapping[Any, PartLimits] | None,
    resource: Resource,
    provider: Provider,
    reporter: PathReporter,
) -> None:
    """Report a smallest number of fields that the sample of the stored version cannot have."""
    part = "spec.template.spec" if resource.role.is_template else "spec"
    least = limits[part].min_properties if limits and part in limits else None
    if not least:
        return
    known = build_spec_schema(resource, resource.storage_version).get("properties", {})
    count = len(sample_spec(resource, provider))
    # More fields than the spec has are already reported.
    if count < least <= len(known):
        message = f"samples have only {count} fields to set, not {least}"
        hint = "Lower minProperties, or add fields."
        here = reporter.at("partLimits", part)
        here.add_error("schema-bounds", message, hint, "minProperties")


def _check_required(name: str, fields: Mapping[str, Any], reporter: PathReporter) -> None:
    """Report a required field that is unknown, or for which the manager has no zero value."""
    if name not in fields:
        hint = suggest(name, fields) or "Name a field of the status."
        reporter.add_error("part-limits-required", f"unknown field {quote(name)} in status", hint)
        return
    schema = fields[name]
    zero = build_zero(schema)
    if "default" in schema or name == "conditions":
        return
    wrong = (
        "it has no type"
        if zero is None
        else next((e[1] for e in find_value_errors(zero, schema)), "")
    )
    if wrong:
        message = f"the manager has no zero value for {quote(name)}: {wrong}"
        reporter.add_error("part-limits-zero", message, "Give it a default, or do not require it.")
