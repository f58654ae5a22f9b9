"""Resolve a description to a :class:`Provider`: derive once, check, freeze.

Findings have positions and come all at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from capsmith.contract.model import Contract
from capsmith.findings import Finding, has_errors, ordered
from capsmith.provider.build import build_provider
from capsmith.provider.derive import derive
from capsmith.provider.draft import Draft
from capsmith.provider.model import Provider
from capsmith.provider.sections import SECTION_TYPES
from capsmith.resolving.checks.components import check_components
from capsmith.resolving.checks.extension import check_extension
from capsmith.resolving.checks.kinds import check_kinds
from capsmith.resolving.checks.names import check_names
from capsmith.resolving.checks.part_limits import check_part_limits
from capsmith.resolving.checks.rules import check_kind_rules
from capsmith.resolving.checks.services import check_services, check_webhooks
from capsmith.resolving.checks.variables import check_variables
from capsmith.resolving.checks.versions import check_versions
from capsmith.yamldoc.document import Document
from capsmith.yamldoc.reporter import Place

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import ProviderSpec

__all__ = ["Resolved", "link_rules", "resolve"]


class Resolved(NamedTuple):
    """``provider`` is None when a finding is an error."""

    draft: Draft
    provider: Provider | None
    findings: tuple[Finding, ...]


def resolve(spec: ProviderSpec, document: Document, contracts: Mapping[str, Contract]) -> Resolved:
    """Decide everything that the author left open, and check that it fits together.

    ``contracts`` holds every contract that is known, by version: their fields are reserved
    regardless of which the provider serves.
    """
    draft = derive(spec, contracts)
    findings: list[Finding] = []
    top = Place(document, (), findings)
    check_names(draft, top)
    check_components(draft, top)
    check_versions(draft, contracts, top)
    check_kinds(draft, contracts, top)
    check_extension(draft, top)
    check_services(draft, top)
    check_webhooks(draft, top)
    for section in SECTION_TYPES:
        check_variables(top.at(section), document.data.get(section))
    if has_errors(findings):
        return Resolved(draft, None, link_rules(findings, contracts))
    provider = build_provider(draft, contracts)
    check_kind_rules(spec, provider, top)
    check_part_limits(spec, provider, top)
    return Resolved(
        draft, None if has_errors(findings) else provider, link_rules(findings, contracts)
    )


def link_rules(
    findings: list[Finding] | tuple[Finding, ...], contracts: Mapping[str, Contract]
) -> tuple[Finding, ...]:
    """Return the findings in order, with a link where the id is that of a contract rule."""
    if not findings:
        return ()
    rules = {id: rule for contract in contracts.values() for id, rule in contract.rules.items()}
    return ordered(
        [
            (
                finding._replace(link=rules[finding.id].source)
                if finding.id in rules and not finding.link
                else finding
            )
            for finding in findings
        ]
    )
