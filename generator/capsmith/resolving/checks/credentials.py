"""Check identity kinds, and the kinds that use them."""

from __future__ import annotations

from capsmith.contract.model import Contract
from capsmith.provider.credentials import SWITCHABLE, find_identity_section, has_identities_beside
from capsmith.provider.described_kinds import MACHINES, is_machine_based
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft, DraftKind
from capsmith.provider.sections import SECTION_TYPES
from capsmith.resolving.checks.fields import check_examples, check_own_fields
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import quote

_ROLE = "Identity"


def check_identities(draft: Draft, contracts: list[Contract], top: PathReporter) -> None:
    """Report invalid or unused identity kinds.

    Ids: ``credentials-keys``, ``credentials-unused``, and the ids of field checks.
    """
    reserved = {
        name: field.rule
        for contract in contracts
        for name, field in contract.types[_ROLE].spec.items()
    }
    for identity in draft.identities:
        reporter = top.at(*identity.path)
        check_own_fields(identity.fields, reserved, reporter.at("spec"))
        check_examples(identity.fields, reporter.at("spec"))
        if identity.keys and not identity.secret:
            message = "the keys name entries of a Secret, but the identity does not refer to one"
            reporter.add_error_at_key("credentials-keys", message, "Remove them.", "keys")
    if draft.identities and not _has_users(draft):
        message = "credentials require infrastructure or a kind that uses them"
        hint = "Remove them, or write `features: {credentials: true}` in a kind that can use them."
        top.add_error_at_key("credentials-unused", message, hint, "credentials")


def _has_users(draft: Draft) -> bool:
    if draft.spec.infrastructure is not None:
        return True
    return any(CREDENTIALS_FEATURE in kind.features for kind in draft.kinds)


def check_use_of_credentials(draft: Draft, kind: DraftKind, reporter: PathReporter) -> None:
    """Report ``credentials-feature`` for a kind that cannot use the provider's identities."""
    if CREDENTIALS_FEATURE not in kind.features or kind.spec.implements not in SWITCHABLE:
        return
    if not draft.identities:
        message = "the feature `credentials` needs kinds of identities"
        hint = "Add the key `credentials` at the top, such as `credentials: AcmeIdentity`."
    elif is_machine_based(kind.spec):
        message = "a control plane that consists of Machines uses no infrastructure"
        hint = "Remove it: its machines have the credentials of their infrastructure."
    elif not has_identities_beside(kind, draft):
        section = find_identity_section(draft)
        main = quote(SECTION_TYPES[section].section)
        message = f"the manager of {quote(kind.name)} does not serve the identities of {main}"
        hint = (
            f"Let one manager serve both: `components: {{{section}: [{section}, {kind.section}]}}`."
        )
    elif _has_other_machines(draft, kind):
        message = f"the machines of the pool, {quote(str(kind.machine_kind))}, lack the feature"
        hint = f"Write `features: {{credentials: true}}` in {quote(str(kind.machine_kind))} too."
    else:
        return
    reporter.add_error_at_key("credentials-feature", message, hint, "features", CREDENTIALS_FEATURE)


def _has_other_machines(draft: Draft, pool: DraftKind) -> bool:
    """Return whether a pool creates machines of a kind that cannot have its identity."""
    if MACHINES not in pool.features or pool.spec.implements != "InfraMachinePool":
        return False
    machine = next((each for each in draft.kinds if each.name == pool.machine_kind), None)
    return machine is not None and CREDENTIALS_FEATURE not in machine.features
