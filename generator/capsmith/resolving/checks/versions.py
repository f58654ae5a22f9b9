"""Check that contracts, API versions and releases agree with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from capsmith.contract.model import Contract
from capsmith.provider.draft import Draft, DraftVersion
from capsmith.resolving.checks.names import repeats
from capsmith.yamldoc.quote import listed, shown
from capsmith.yamldoc.reporter import Place

_LABEL_LIMIT = 63
"""Of the value of a label."""


def check_versions(draft: Draft, contracts: Mapping[str, Contract], top: Place) -> None:
    """Report GEN-02, GEN-08, GEN-09, ``api-version-*``, ``contract-label-*``, ``release-order``."""
    _contracts(draft, contracts, top.at("contracts"))
    _api_versions(draft, top.at("apiVersions"))
    _releases(draft, top.at("releases"))


def _contracts(draft: Draft, contracts: Mapping[str, Contract], place: Place) -> None:
    repeats(draft.spec.contracts, place)
    for index, version in enumerate(draft.spec.contracts):
        if version not in contracts:
            message = f"capsmith does not know the contract {shown(version)}"
            place.error("contract-unknown", message, f"Use one of: {listed(contracts)}.", index)


def _api_versions(draft: Draft, place: Place) -> None:
    versions = draft.api_versions
    repeats([each.name for each in versions], place)
    storing = [index for index, each in enumerate(versions) if each.storage]
    if len(storing) != 1:
        message = f"exactly one API version must be the storage version, but {len(storing)} are"
        place.error("api-version-storage", message, "Set `storage: true` on exactly one version.")
    for index in storing:
        if not versions[index].served:
            name = shown(versions[index].name)
            message = (
                f"{name} is the storage version and in the contract label, so it must be served"
            )
            place.error(
                "GEN-02",
                message,
                "Remove `served: false`, or set `storage: true` on another version.",
                index,
            )
    for index, each in enumerate(versions):
        if each.deprecation_warning and not each.deprecated:
            message = f"{shown(each.name)} is not deprecated, so its warning is never shown"
            hint = "Add `deprecated: true`."
            place.error("api-version-deprecated", message, hint, index, "deprecationWarning")
    check_contract_labels(versions, place)
    _shapes(draft, versions, place)


def check_contract_labels(versions: Sequence[DraftVersion], place: Place) -> None:
    """Report ``contract-label-too-long``: labels of CRDs name the versions of each contract."""
    for contract in sorted({each.contract for each in versions if each.contract}):
        served = [each.name for each in versions if each.served and each.contract == contract]
        value = "_".join(served)
        if len(value) > _LABEL_LIMIT:
            message = f"`{value}` of the label `cluster.x-k8s.io/{contract}` would have more than"
            hint = "Remove versions, or write `served: false` at those that no client uses."
            place.error("contract-label-too-long", f"{message} {_LABEL_LIMIT} characters", hint)


def _shapes(draft: Draft, versions: tuple[DraftVersion, ...], place: Place) -> None:
    """Each version follows one of the contracts (GEN-06), and each contract has one (GEN-08)."""
    contracts = draft.spec.contracts
    for index, each in enumerate(versions):
        if not each.contract:
            message = f"it is ambiguous which contract {shown(each.name)} follows: there are two"
            place.error("api-version-contract", message, "Add `contract: …` to the version.", index)
        elif each.served and each.contract not in contracts:
            message = f"{shown(each.name)} follows {each.contract}, which is not in `contracts`"
            place.error(
                "api-version-contract",
                message,
                f"Use a contract that is served: {listed(contracts)}.",
                index,
            )
    if not all(each.contract for each in versions):
        return
    for contract in sorted(set(contracts)):
        one = len(set(contracts)) == 1
        if not one and not any(each.served and each.contract == contract for each in versions):
            message = f"no served API version follows the contract {contract}"
            hint = "Add a version that follows this contract, or remove the contract."
            place.error("GEN-08", message, hint)
    newest = max(contracts)
    for index, each in enumerate(versions):
        if each.storage and each.contract != newest:
            message = f"the storage version {shown(each.name)} does not follow {newest}"
            hint = f"Set `storage: true` on a version that follows {newest}: controllers use it."
            place.error("api-version-storage", message, hint, index)


def _releases(draft: Draft, place: Place) -> None:
    releases, newest = draft.spec.releases, draft.series[0]
    contract, contracts = releases[newest], draft.spec.contracts
    if contract not in contracts:
        place.error(
            "GEN-09",
            f"the newest series {newest} has {contract}, but {listed(contracts)} is served",
            "Use the same contract for the newest series and in `contracts`.",
            newest,
        )
    for older, newer in pairwise(reversed(draft.series)):
        if releases[older] > releases[newer]:
            message = (
                f"{newer} has an older contract than {older}, so no release can be upgraded to it"
            )
            place.warning("release-order", message, "Add a series for the new contract.", newer)
