"""Check the API versions of the provider and its kinds, and fields that differ by version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.provider.described_kinds import MACHINES
from capsmith.provider.draft import Draft, DraftKind, DraftVersion
from capsmith.provider.fields import Field
from capsmith.provider.resources import convert_fields
from capsmith.provider.versions import PartChanges, compare_parts, is_needed
from capsmith.provider_yaml.model import TemplateSpec
from capsmith.resolving.checks.fields import check_columns, check_fields
from capsmith.resolving.checks.names import check_repeats
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import join_names, quote, suggest

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import ApiVersionSpec, VersionFieldsSpec

_LABEL_LIMIT = 63
"""Maximum length of a label value, in characters."""


def check_versions(draft: Draft, contracts: Mapping[str, Contract], top: PathReporter) -> None:
    """Report contract versions, API versions and releases that contradict each other.

    Ids: ``contract-unknown``, GEN-02 (the storage version must be served), GEN-08 (each contract
    version needs an API version), GEN-09 (the newest release's contract version must be served),
    ``api-version-*``, ``contract-label-too-long`` and ``release-order``.
    """
    _check_contracts(draft, contracts, top.at("contracts"))
    _check_api_versions(draft, top.at("apiVersions"))
    _check_releases(draft, top.at("releases"))


def _check_contracts(
    draft: Draft, contracts: Mapping[str, Contract], reporter: PathReporter
) -> None:
    check_repeats(draft.spec.contracts, reporter)
    for index, version in enumerate(draft.spec.contracts):
        if version not in contracts:
            message = f"capsmith does not know the contract {quote(version)}"
            reporter.add_error(
                "contract-unknown", message, f"Use one of: {join_names(contracts)}.", index
            )


def _check_api_versions(draft: Draft, reporter: PathReporter) -> None:
    versions = draft.api_versions
    check_repeats([each.name for each in versions], reporter)
    storing = [index for index, each in enumerate(versions) if each.storage]
    if len(storing) != 1:
        message = f"exactly one API version must be the storage version, but {len(storing)} are"
        reporter.add_error(
            "api-version-storage", message, "Set `storage: true` on exactly one version."
        )
    for index in storing:
        if not versions[index].served:
            name = quote(versions[index].name)
            message = (
                f"{name} is the storage version and in the contract label, so it must be served"
            )
            reporter.add_error(
                "GEN-02",
                message,
                "Remove `served: false`, or set `storage: true` on another version.",
                index,
            )
    for index, each in enumerate(versions):
        if each.deprecation_warning and not each.deprecated:
            message = f"{quote(each.name)} is not deprecated, so its warning is never shown"
            hint = "Add `deprecated: true`."
            reporter.add_error("api-version-deprecated", message, hint, index, "deprecationWarning")
    check_contract_labels(versions, reporter)
    _check_shapes(draft, versions, reporter)


def check_contract_labels(versions: Sequence[DraftVersion], reporter: PathReporter) -> None:
    """Report ``contract-label-too-long`` if the served versions do not fit into a label."""
    for contract in sorted({each.contract for each in versions if each.contract}):
        served = [each.name for each in versions if each.served and each.contract == contract]
        # Core splits the label's value at underscores, which version names cannot contain.
        value = "_".join(served)
        if len(value) > _LABEL_LIMIT:
            message = f"`{value}` of the label `cluster.x-k8s.io/{contract}` would have more than"
            hint = "Remove versions, or write `served: false` at those that no client uses."
            reporter.add_error(
                "contract-label-too-long", f"{message} {_LABEL_LIMIT} characters", hint
            )


def _check_shapes(draft: Draft, versions: tuple[DraftVersion, ...], reporter: PathReporter) -> None:
    """Report versions without a followed contract (GEN-06) and contracts without one (GEN-08)."""
    contracts = draft.spec.contracts
    for index, each in enumerate(versions):
        if not each.contract:
            message = f"it is ambiguous which contract {quote(each.name)} follows: there are two"
            reporter.add_error(
                "api-version-contract", message, "Add `contract: …` to the version.", index
            )
        elif each.served and each.contract not in contracts:
            message = f"{quote(each.name)} follows {each.contract}, which is not in `contracts`"
            reporter.add_error(
                "api-version-contract",
                message,
                f"Use a contract that is served: {join_names(contracts)}.",
                index,
            )
    if not all(each.contract for each in versions):
        return
    for contract in sorted(set(contracts)):
        one = len(set(contracts)) == 1
        if not one and not any(each.served and each.contract == contract for each in versions):
            message = f"no served API version follows the contract {contract}"
            hint = "Add a version that follows this contract, or remove the contract."
            reporter.add_error("GEN-08", message, hint)
    # The names of contracts sort by age.
    newest = max(contracts)
    for index, each in enumerate(versions):
        if each.storage and each.contract != newest:
            message = f"the storage version {quote(each.name)} does not follow {newest}"
            hint = f"Set `storage: true` on a version that follows {newest}: controllers use it."
            reporter.add_error("api-version-storage", message, hint, index)


def _check_releases(draft: Draft, reporter: PathReporter) -> None:
    releases, newest = draft.spec.releases, draft.series[0]
    contract, contracts = releases[newest], draft.spec.contracts
    if contract not in contracts:
        reporter.add_error(
            "GEN-09",
            f"the newest series {newest} has {contract}, but {join_names(contracts)} is served",
            "Use the same contract for the newest series and in `contracts`.",
            newest,
        )
    # The series are listed newest first, but an upgrade goes the other way.
    for older, newer in pairwise(reversed(draft.series)):
        if releases[older] > releases[newer]:
            message = (
                f"{newer} has an older contract than {older}, so no release can be upgraded to it"
            )
            reporter.add_warning(
                "release-order", message, "Add a series for the new contract.", newer
            )


def check_kind_versions(draft: Draft, kind: DraftKind, reporter: PathReporter) -> None:
    """Report API versions that a kind or template must not have, and required ones that it lacks.

    Ids: ``kind-version-*``, GEN-02, GEN-08, and MP-07 for a pool and its machines.
    """
    template = kind.spec.template
    if isinstance(template, TemplateSpec) and template.api_versions is not None:
        here = reporter.at("template", "apiVersions")
        _check_named(draft, template.api_versions, kind.template_versions, here)
    if kind.spec.api_versions is None:
        return
    here, names = reporter.at("apiVersions"), [each.name for each in kind.versions]
    _check_named(draft, kind.spec.api_versions, kind.versions, here)
    followed = {version.contract for version in kind.versions}
    served = {each.contract for each in draft.api_versions if each.served}
    for contract in sorted(served - followed) if kind.spec.implements != "Resource" else ():
        message = f"{quote(kind.name)} is in no API version that follows {contract}"
        # A core that reads the newest contract uses a kind that older cores do not know.
        add = here.add_error if contract == max(served) else here.add_warning
        add("GEN-08", message, "Add the API version of that contract.")
    known = {each.name for each in draft.api_versions}
    for name in kind.spec.versions or {}:
        if name in known and name not in names:
            message = f"{quote(kind.name)} is not in {quote(name)}"
            hint = "Remove these fields, or add the version to `apiVersions` of the kind."
            reporter.add_error_at_key("kind-version-unknown", message, hint, "versions", name)
    _check_machines(draft, kind, set(names), reporter)


def _check_named(
    draft: Draft,
    written: Sequence[str | ApiVersionSpec],
    chosen: Sequence[DraftVersion],
    reporter: PathReporter,
) -> None:
    names = [each if isinstance(each, str) else each.name for each in written]
    check_repeats(names, reporter)
    known = {each.name for each in draft.api_versions}
    for index, name in enumerate(names):
        if name not in known:
            message = f"{quote(name)} is not an API version of this provider"
            hint = suggest(name, known) or "Declare it in `apiVersions` at the top."
            reporter.add_error("kind-version-unknown", message, hint, index)
    check_contract_labels(chosen, reporter)
    stored = [each for each in chosen if each.storage]
    if len(stored) != 1:
        message = f"exactly one version must be the storage version, but {len(stored)} are"
        hint = "Add the storage version of `apiVersions` at the top, or set `storage: true` on one."
        reporter.add_error("kind-version-stored", message, hint)
    elif not stored[0].served:
        message = f"{quote(stored[0].name)} is the storage version, so it must be served"
        reporter.add_error(
            "GEN-02", message, "Remove `served: false`, or set `storage: true` on another version."
        )


def _check_machines(draft: Draft, pool: DraftKind, named: Set[str], reporter: PathReporter) -> None:
    """Report missing versions of pool machines, which core reads in the pool's version (MP-07)."""
    if MACHINES not in pool.features or pool.machine_kind is None:
        return
    for kind in draft.kinds:
        own = {each.name for each in kind.versions}
        if kind.name == pool.machine_kind and not named <= own:
            message = f"{quote(kind.name)} is not in {join_names(sorted(named - own))}"
            hint = "Give the machines of a pool all API versions of the pool."
            reporter.add_error("MP-07", message, hint, "apiVersions")


# A single name for client-go's parser: everything except its terminators.
def check_version_fields(
    draft: Draft, kind: DraftKind, contracts: list[Contract], reporter: PathReporter
) -> None:
    """Report invalid fields and settings under a kind's ``versions``.

    Ids: ``version-fields-unknown``, ``version-fields-stored``, ``version-fields-required``, and the
    ids of field and column checks.
    """
    # A version that the kind does not have is reported by the check of the kind's versions.
    versions = {version.name: version for version in (*draft.api_versions, *kind.versions)}
    for name, written in (kind.spec.versions or {}).items():
        here = reporter.at("versions", name)
        if not _has_own_fields(name, versions, "kind", here):
            continue
        own = {"spec": written.spec, "status": written.status}
        check_fields(draft, kind, kind.spec.model_copy(update=own), contracts, here)
        merged = {part: fields or getattr(kind.spec, part) for part, fields in own.items()}
        columns = {"printer_columns": written.printer_columns}
        check_columns(kind.spec.model_copy(update=merged | columns), contracts, here)
        _check_required(kind, name, written, reporter)


def check_template_versions(draft: Draft, kind: DraftKind, reporter: PathReporter) -> None:
    """Report settings under a template's ``versions`` that no version of it would have.

    Ids: ``version-fields-unknown``, ``version-fields-stored`` and ``kind-version-unknown``.
    """
    template = kind.spec.template
    if not isinstance(template, TemplateSpec):
        return
    there = {version.name for version in kind.template_versions}
    versions = {each.name: each for each in (*draft.api_versions, *kind.template_versions)}
    for name in template.versions or {}:
        here = reporter.at("template", "versions", name)
        if _has_own_fields(name, versions, "template", here) and name not in there:
            message = f"the template of {quote(kind.name)} is not in {quote(name)}"
            hint = "Remove these settings, or add the version to `apiVersions` of the template."
            here.add_error_at_key("kind-version-unknown", message, hint)


def _has_own_fields(
    name: str, versions: Mapping[str, DraftVersion], owner: str, reporter: PathReporter
) -> bool:
    """Return whether a version may have settings of its own, and report if not."""
    if name not in versions:
        message = f"{quote(name)} is not an API version of this provider"
        hint = suggest(name, versions) or "Declare it in `apiVersions`."
        reporter.add_error_at_key("version-fields-unknown", message, hint)
        return False
    if versions[name].storage:
        message = f"{quote(name)} is the storage version, which has the fields of the {owner}"
        hint = f"Declare its fields in `spec` and `status` of the {owner} itself, not here."
        reporter.add_error_at_key("version-fields-stored", message, hint)
        return False
    return True


def _check_required(
    kind: DraftKind, version: str, written: VersionFieldsSpec, reporter: PathReporter
) -> None:
    """Report required fields that conversion from the other version leaves empty.

    A warning if the author's conversion can set them, which a test in the repository checks; an
    error if the other version has no fields, so that there is no such conversion.
    """
    if written.spec is None:
        return
    stored = next((each.name for each in kind.versions if each.storage), "")
    hub = convert_fields(kind.spec.spec)
    changes = compare_parts("spec", convert_fields(written.spec), hub)
    here = reporter.at("versions", version, "spec")
    for field in () if changes.hub_changes else changes.spoke_changes:
        if is_needed(field):
            message = f"{version} requires {quote(field.name)}, but {stored} has no value for it"
            hint = f"Give it a default in {version}, do not require it, or keep it in {stored}"
            add = here.add_warning_at_key if hub else here.add_error_at_key
            add("version-fields-required", message, hint + _or_convert(bool(hub)), field.name)
    for field, why in _list_unfilled_in_hub(changes, hub):
        message = f"{stored} requires {quote(field.name)}, which {why} in {version}"
        hint = f"Give it a default, or do not require it: objects are stored in {stored}"
        add = reporter.add_warning_at_key if changes.spoke else reporter.add_error_at_key
        hint += _or_convert(bool(changes.spoke))
        add("version-fields-required", message, hint, "spec", field.name)


def _or_convert(is_possible: bool) -> str:
    return "; otherwise your conversion must set it." if is_possible else "."


def _list_unfilled_in_hub(changes: PartChanges, hub: tuple[Field, ...]) -> list[tuple[Field, str]]:
    spoke = {field.name for field in changes.spoke}
    changed = {field.name for field in changes.hub_changes}
    unfilled = [field for field in hub if is_needed(field) and field.name in changed]
    missing = [field for field in unfilled if field.name not in spoke]
    found = [(field, "does not exist") for field in missing if not changes.spoke_changes]
    optional = {field.name for field in changes.spoke if not field.required}
    return found + [(field, "is optional") for field in unfilled if field.name in optional]
