"""Limits for whole parts of objects: what the manager writes must keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capsmith.output.crd import ZEROS, version_schema
from capsmith.provider.model import ApiVersion, Provider, Resource
from capsmith.provider_yaml.model import TemplateSpec
from capsmith.provider_yaml.rules import check_expressions
from capsmith.provider_yaml.values import mismatches
from capsmith.yamldoc.quote import did_you_mean, shown
from capsmith.yamldoc.reporter import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capsmith.provider_yaml.model import KindSpec, PartLimits, ProviderSpec

_STATUS = "status"
_RULES = "x-kubernetes-validations"


def check_part_limits(spec: ProviderSpec, provider: Provider, top: Place) -> None:
    """Report ``part-limits-*`` and the ids of rules."""
    resources = {str(resource.kind): resource for resource in provider.resources}
    for section, kind, described in spec.kinds():
        _of_versions(described, resources[kind], top.at(section, kind))
        if isinstance(described.template, TemplateSpec):
            template = resources[f"{kind}Template"]
            _of_versions(described.template, template, top.at(section, kind, "template"))


def _of_versions(described: KindSpec | TemplateSpec, resource: Resource, place: Place) -> None:
    _check(described.part_limits, resource, resource.storage_version, place)
    versions = {str(each.name): each for each in resource.versions}
    for name, written in (described.versions or {}).items():
        if name in versions:
            _check(written.part_limits, resource, versions[name], place.at("versions", name))


def _check(
    limits: Mapping[Any, PartLimits] | None, resource: Resource, version: ApiVersion, place: Place
) -> None:
    schema = version_schema(resource, version)
    for part, written in (limits or {}).items():
        here, found = place.at("partLimits", part), schema
        for step in part.split("."):
            found = found.get("properties", {}).get(step, {})
        check_expressions(list(enumerate(written.validations or ())), found, here.at(_RULES))
        if written.required is not None and (part != _STATUS or resource.role.is_template):
            message = f"the required fields of {shown(part)} are marked on the fields themselves"
            here.error_at_key(
                "part-limits-required", message, "Set `required: true` on the field.", "required"
            )
        elif written.required is not None:
            for index, name in enumerate(written.required):
                _required(name, found.get("properties", {}), here.at("required", index))


def _required(name: str, fields: Mapping[str, Any], place: Place) -> None:
    """Report a field for which the zero value is none, and say that there will be zero values."""
    if name not in fields:
        hint = did_you_mean(name, fields) or "Name a field of the status."
        place.error("part-limits-required", f"unknown field {shown(name)} in status", hint)
        return
    schema = fields[name]
    zero = ZEROS.get(str(schema.get("type")))
    if "default" in schema or name == "conditions":
        return
    wrong = "it has no type" if zero is None else next((e[1] for e in mismatches(zero, schema)), "")
    if wrong:
        message = f"the manager has no zero value for {shown(name)}: {wrong}"
        place.error("part-limits-zero", message, "Give it a default, or do not require it.")
