"""Resolve a description into a :class:`Provider`: derive a draft, check it, and build.

Lists all checks that compare keys, in the order in which an author reads provider.yaml.  Checks on
single keys run earlier, when the file is parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from capsmith.contract.model import Contract
from capsmith.findings import Finding, has_errors
from capsmith.provider.build import build_provider
from capsmith.provider.derive import derive
from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider.model import Provider
from capsmith.provider.sections import SECTION_TYPES
from capsmith.resolving.checks.contract_fields import check_contract_fields
from capsmith.resolving.checks.contract_paths import check_contract_paths
from capsmith.resolving.checks.credentials import check_identities, check_use_of_credentials
from capsmith.resolving.checks.fields import check_columns, check_fields, check_scale
from capsmith.resolving.checks.instances import check_instance_status
from capsmith.resolving.checks.kinds import (
    check_clashes,
    check_crd_names,
    check_features,
    check_files,
    check_kind_names,
    check_scope,
    check_short_names,
    check_templates,
    check_webhooks,
)
from capsmith.resolving.checks.machines import check_control_planes, check_pools
from capsmith.resolving.checks.manager import check_manager
from capsmith.resolving.checks.names import check_names
from capsmith.resolving.checks.rules import check_kind_rules, check_part_limits
from capsmith.resolving.checks.sections import (
    check_bootstrap,
    check_components,
    check_extension,
    check_sections,
    check_services,
    check_variables,
)
from capsmith.resolving.checks.versions import (
    check_kind_versions,
    check_template_versions,
    check_version_fields,
    check_versions,
)
from capsmith.resolving.checks.watches import check_watches
from capsmith.yamldoc.document import Document, PathReporter

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import ProviderSpec

__all__ = ["Resolved", "link_rules", "resolve"]


class Resolved(NamedTuple):
    """A resolved provider.yaml: the draft, the provider, and unsorted findings.

    ``provider`` is None if any finding is an error. The draft always exists.
    """

    draft: Draft
    provider: Provider | None
    findings: tuple[Finding, ...]


def resolve(spec: ProviderSpec, document: Document, contracts: Mapping[str, Contract]) -> Resolved:
    """Derive every setting that the author left out, check the result, and build the provider.

    ``contracts`` maps every known version to its contract, because the fields of all contract
    versions are reserved, even of those that the provider does not have.
    """
    draft = derive(spec, contracts)
    findings: list[Finding] = []
    top = PathReporter(document, (), findings)
    _check_draft(draft, contracts, top)
    for kind in draft.kinds:
        _check_kind(kind, draft, contracts, top.at(kind.section, kind.name))
    # A draft with errors cannot be frozen, because its names do not fit the types of a provider.
    if has_errors(findings):
        return Resolved(draft, None, tuple(findings))
    provider = build_provider(draft, contracts)
    # These checks compile CEL against CRD schemas, which only a valid provider has.
    check_kind_rules(spec, provider, top)
    check_part_limits(spec, provider, top)
    return Resolved(draft, None if has_errors(findings) else provider, tuple(findings))


def _check_draft(draft: Draft, contracts: Mapping[str, Contract], top: PathReporter) -> None:
    """Run the checks of the provider as a whole."""
    followed_first = _followed_first(draft, contracts)
    check_names(draft, top)
    check_versions(draft, contracts, top)
    check_sections(draft, top)
    check_components(draft, top)
    check_services(draft, top)
    for section in SECTION_TYPES:
        check_variables(top.at(section), top.document.data.get(section))
    check_clashes(draft, top)
    check_crd_names(draft, top)
    check_files(draft, top)
    check_short_names(draft, top)
    check_kind_names(draft, top)
    check_templates(draft, followed_first, top)
    check_webhooks(draft, top)
    check_pools(draft, top)
    check_instance_status(draft, followed_first, top)
    check_bootstrap(draft, top)
    check_control_planes(draft, top)
    check_extension(draft, top)
    check_identities(draft, followed_first, top)
    check_manager(draft, top)


def _check_kind(
    kind: DraftKind, draft: Draft, contracts: Mapping[str, Contract], reporter: PathReporter
) -> None:
    """Run the checks of one kind; ``reporter`` has the path to the kind."""
    followed_first = _followed_first(draft, contracts)
    check_scope(kind, reporter)
    check_features(kind, reporter)
    check_use_of_credentials(draft, kind, reporter)
    check_fields(draft, kind, kind.spec, followed_first, reporter)
    check_contract_fields(draft, kind, contracts, reporter)
    check_contract_paths(kind, contracts, reporter)
    check_columns(kind.spec, followed_first, reporter)
    check_scale(kind.spec, followed_first, reporter)
    check_kind_versions(draft, kind, reporter)
    check_version_fields(draft, kind, followed_first, reporter)
    check_template_versions(draft, kind, reporter)
    check_watches(kind, draft, reporter)


def _followed_first(draft: Draft, contracts: Mapping[str, Contract]) -> list[Contract]:
    """Return all contracts, starting with those that the provider follows.

    A field that several contracts have is reported with the rule of the first.
    """
    followed = draft.spec.contracts
    return [contracts[each] for each in sorted(contracts, key=lambda v: (v not in followed, v))]


def link_rules(
    findings: list[Finding] | tuple[Finding, ...], contracts: Mapping[str, Contract]
) -> tuple[Finding, ...]:
    """Return the findings. Those whose id is a contract rule get a link to the rule's source.

    Rules are read from disk only if there are findings.
    """
    if not findings:
        return ()
    rules = {id: rule for contract in contracts.values() for id, rule in contract.rules.items()}
    return tuple(
        (
            finding._replace(link=rules[finding.id].source)
            if finding.id in rules and not finding.link
            else finding
        )
        for finding in findings
    )
