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
    """Ids GEN-09, GEN-02, ``contracts-need-conversion``, ``api-version-*``, ``release-order``."""
    _contracts(spec, contracts, top.at("contracts"))
    _api_versions(spec, top.at("apiVersions"))
    _releases(spec, top.at("releases"))


def _contracts(spec: ProviderSpec, contracts: Mapping[str, Contract], place: Place) -> None:
    repeats(spec.contracts, place)
    for index, version in enumerate(spec.contracts):
        if version not in contracts:
            message = f"nothing is known of the contract {shown(version)}"
            place.error("contract-unknown", message, f"known: {listed(contracts)}", index)
    if len(set(spec.contracts)) > 1:
        place.error(
            "contracts-need-conversion",
            "two contracts at once need API versions of two shapes, and conversion between them",
            f"serve one, the newest that your users' core speaks: [{max(spec.contracts)}]",
        )


def _api_versions(spec: ProviderSpec, place: Place) -> None:
    versions = derive.api_versions(spec)
    repeats([name for name, _, _ in versions], place)
    storing = [index for index, (_, _, storage) in enumerate(versions) if storage]
    if len(storing) != 1:
        message = f"exactly one API version is stored, not {len(storing)}"
        place.error("api-version-storage", message, "write `storage: true` at one of them")
    for index in storing:
        name, served, _ = versions[index]
        if not served:
            message = f"{shown(name)} is stored and in the contract's label, so it has to be served"
            place.error("GEN-02", message, "leave `served: false` out, or store another", index)


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
