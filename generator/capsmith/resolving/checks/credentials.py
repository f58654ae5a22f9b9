"""Check identity kinds, and the kinds that use them."""

from __future__ import annotations

from capsmith.contract.model import Contract
from capsmith.provider.credentials import (
    SWITCHABLE,
    find_identity_section,
    has_identities_beside,
    has_identity_reference,
)
from capsmith.provider.described_kinds import MACHINES, is_machine_based
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft, DraftIdentity, DraftKind
from capsmith.provider.model import SOURCE_REF
from capsmith.provider.sections import SECTION_TYPES
from capsmith.resolving.checks.fields import check_examples, check_own_fields
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import quote

_ROLE = "Identity"


def check_identities(draft: Draft, contracts: list[Contract], top: PathReporter) -> None:
    """Report invalid or unused identity kinds.

    Ids: ``credentials-keys``, ``credentials-sources``, ``credentials-unused``, and the ids of field
    checks.
    """
    for identity in draft.identities:
        reporter = top.at(*identity.path)
        reserved = {
            name: field.rule
            for contract in contracts
            for name, field in contract.types[_ROLE].spec.items()
            # Authors had fields of this name before the key `sources` existed.
            if name != SOURCE_REF or identity.sources
        }
        check_own_fields(identity.fields, reserved, reporter.at("spec"))
        check_examples(identity.fields, reporter.at("spec"))
        if identity.keys and not identity.secret:
            message = "the keys name entries of a Secret, but the identity does not refer to one"
            reporter.add_error_at_key("credentials-keys", message, "Remove them.", "keys")
        _check_sources(identity, draft, reporter)
    if draft.identities and not _has_users(draft):
        message = "no kind uses these credentials"
        hint = "Remove them, or write `features: {credentials: true}` in a kind that can use them."
        top.add_error_at_key("credentials-unused", message, hint, "credentials")


def _check_sources(identity: DraftIdentity, draft: Draft, reporter: PathReporter) -> None:
    kinds = {each.kind: each for each in draft.identities}
    for index, name in enumerate(identity.sources):
        source = kinds.get(name)
        if source is None:
            message = f"{quote(name)} is not a kind of credentials"
            hint = f"Name one of: {', '.join(sorted(kinds))}."
        elif source.namespaced and not identity.namespaced:
            message = f"the identity is cluster-scoped, but {quote(name)} is namespaced"
            hint = f"Make the identity namespaced too, or remove {quote(name)}."
        else:
            continue
        reporter.add_error("credentials-sources", message, hint, "sources", index)


def _has_users(draft: Draft) -> bool:
    return any(has_identity_reference(kind, draft) for kind in draft.kinds) or any(
        CREDENTIALS_FEATURE in kind.features for kind in draft.kinds
    )


def check_use_of_credentials(draft: Draft, kind: DraftKind, reporter: PathReporter) -> None:
    """Report ``credentials-feature`` for a kind that cannot use the provider's identities."""
    switched = kind.spec.features or {}
    is_chosen = kind.spec.implements in SWITCHABLE or CREDENTIALS_FEATURE in switched
    if CREDENTIALS_FEATURE not in kind.features or not is_chosen:
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
