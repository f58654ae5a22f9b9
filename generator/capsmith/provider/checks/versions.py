"""Contracts, API versions and releases: do they agree with each other?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.provider import derive
from capsmith.provider.checks.names import repeats
from capsmith.spec.place import Place
from capsmith.spec.quote import listed, shown

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec


def check_versions(spec: ProviderSpec, contracts: Mapping[str, Contract], top: Place) -> None:
    """Ids GEN-09, GEN-08, GEN-02, ``api-version-*``, ``release-order``."""
    _contracts(spec, contracts, top.at("contracts"))
    _api_versions(spec, top.at("apiVersions"))
    _releases(spec, top.at("releases"))


def _contracts(spec: ProviderSpec, contracts: Mapping[str, Contract], place: Place) -> None:
    repeats(spec.contracts, place)
    for index, version in enumerate(spec.contracts):
        if version not in contracts:
            message = f"nothing is known of the contract {shown(version)}"
            place.error("contract-unknown", message, f"known: {listed(contracts)}", index)


def _api_versions(spec: ProviderSpec, place: Place) -> None:
    versions = derive.api_versions(spec)
    repeats([each.name for each in versions], place)
    storing = [index for index, each in enumerate(versions) if each.storage]
    if len(storing) != 1:
        message = f"exactly one API version is stored, not {len(storing)}"
        place.error("api-version-storage", message, "write `storage: true` at one of them")
    for index in storing:
        if not versions[index].served:
            name = shown(versions[index].name)
            message = f"{name} is stored and in the contract's label, so it has to be served"
            place.error("GEN-02", message, "leave `served: false` out, or store another", index)
    _shapes(spec, versions, place)


def _shapes(spec: ProviderSpec, versions: list[derive.Versioned], place: Place) -> None:
    """Each version follows one of the contracts (GEN-06), and each contract has one (GEN-08)."""
    for index, each in enumerate(versions):
        if not each.contract:
            message = f"which contract {shown(each.name)} follows is not said, and there are two"
            place.error("api-version-contract", message, "write `contract: …` at it", index)
        elif each.served and each.contract not in spec.contracts:
            message = f"{shown(each.name)} follows {each.contract}, which `contracts` does not name"
            place.error("api-version-contract", message, f"served: {listed(spec.contracts)}", index)
    if not all(each.contract for each in versions):
        return
    for contract in sorted(set(spec.contracts)):
        one = len(set(spec.contracts)) == 1
        if not one and not any(each.served and each.contract == contract for each in versions):
            message = f"no served API version follows the contract {contract}"
            hint = "add a version with this contract, or take the contract away"
            place.error("GEN-08", message, hint)
    newest = max(spec.contracts)
    for index, each in enumerate(versions):
        if each.storage and each.contract != newest:
            message = f"{shown(each.name)} is stored, and follows another contract than {newest}"
            hint = f"store a version that follows {newest}: controllers work on that"
            place.error("api-version-storage", message, hint, index)


def _releases(spec: ProviderSpec, place: Place) -> None:
    series = sorted(spec.releases, key=derive.series_order)
    newest = series[-1]
    contract = spec.releases[newest]
    if contract not in spec.contracts:
        place.error(
            "GEN-09",
            f"the newest series {newest} says {contract}, but {listed(spec.contracts)} is served",
            "let the newest series and `contracts` name the same contract",
            newest,
        )
    for older, newer in pairwise(series):
        if spec.releases[older] > spec.releases[newer]:
            message = f"{newer} has an older contract than {older}: nobody can upgrade to it"
            place.warning("release-order", message, "a new contract comes with a new series", newer)
