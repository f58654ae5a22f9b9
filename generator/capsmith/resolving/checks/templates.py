"""Templates that the author leaves out, and fields of their status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from capsmith.contract.model import Contract
from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider.templates import WITHOUT_TEMPLATE, supports_classes
from capsmith.resolving.checks.contract_fields import check_template_fields
from capsmith.resolving.checks.fields import check_own_fields
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import shown

_CONSEQUENCES: Mapping[str, str] = {
    "InfraCluster": "no ClusterClass can use {kind}, so the provider releases none",
    "ControlPlane": "no ClusterClass can use {kind}, so the provider releases none",
    "InfraMachinePool": "no ClusterClass can have workers in {kind}",
}
"""What is impossible without the template, by role; of other roles it cannot be left out."""


def check_templates(draft: Draft, contracts: Iterable[Contract], top: Place) -> None:
    """Report ``template-*``, and the ids of fields for those in the status of templates."""
    known = list(contracts)
    for kind in draft.kinds:
        here = top.at(kind.section, kind.name)
        if kind.spec.template is not None:
            _check(kind, known, here)
    if draft.spec.cluster_classes and not supports_classes(draft.spec):
        message = "a ClusterClass requires a template for each kind of cluster and control plane"
        hint = "Remove `template: false`, or write `clusterClasses: []`."
        top.error("template-needed", message, hint, "clusterClasses")


def _check(kind: DraftKind, contracts: Iterable[Contract], place: Place) -> None:
    template, role = kind.spec.template, kind.spec.implements
    if role in WITHOUT_TEMPLATE:
        message = f"a kind that implements {role} cannot have a template"
        place.error_at_key("template-unknown", message, "Remove it.", "template")
    elif template is False and role not in _CONSEQUENCES:
        message = f"core only creates {shown(kind.name)} from templates"
        place.error("template-needed", message, "Remove `template: false`.", "template")
    elif template is False:
        message = "without a template, " + _CONSEQUENCES[role].format(kind=kind.name)
        place.warning("template-left-out", message, "Remove `template: false`.", "template")
    elif template is not None and not isinstance(template, bool):
        reserved = {
            name: field.rule
            for contract in contracts
            for name, field in contract.types[f"{role}Template"].status.items()
        }
        check_own_fields(template.status or {}, reserved, place.at("template", "status"))
        check_template_fields(kind, contracts, template, place.at("template"))
