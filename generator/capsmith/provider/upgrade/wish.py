"""What somebody wants of contracts and API versions, and whether it makes sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capsmith.contract.load import known_versions
from capsmith.findings import Finding
from capsmith.provider import derive
from capsmith.safetext import SeriesName, VersionName
from capsmith.spec.place import Place
from capsmith.spec.quote import did_you_mean, listed, shown

if TYPE_CHECKING:
    from capsmith.spec.document import Document
    from capsmith.spec.model import ProviderSpec


@dataclass(frozen=True, slots=True)
class Wish:
    """The options of the command; what was not said is empty."""

    contracts: tuple[str, ...] = ()
    """To follow from now on."""
    api_version: str = ""
    """Name of the API version that a new contract brings."""
    keep_api_version: bool = False
    """Whether API versions keep their names and change their shape."""
    drop: tuple[str, ...] = ()
    """Names of the API versions that go."""
    release: str = ""
    """The release series of the change; the next minor unless said."""


def nonsense(wish: Wish, spec: ProviderSpec, document: Document) -> tuple[Finding, ...]:
    """What is wrong with a wish about a description that is valid itself.

    Ids: ``contract-unknown``, ``contract-backwards``, ``contract-stage-skipped``,
    ``keep-api-version``, ``api-version-*``, ``drop-*``, CC-09 and ``release-*``.
    """
    findings: list[Finding] = []
    top = Place(document, (), findings)
    versions = top.at("apiVersions" if "apiVersions" in document.data else "contracts")
    if wish.contracts:
        _contracts(wish, spec, top.at("contracts"))
    if not findings and wish.api_version:
        _api_version(wish, spec, versions)
    for name in wish.drop:
        _drop(name, spec, versions)
    if wish.release:
        _release(wish, spec, top.at("releases"))
    return tuple(findings)


def adds_contract(wish: Wish, spec: ProviderSpec) -> bool:
    """Whether a contract is wanted that is newer than all that are followed."""
    return max(wish.contracts) > max(spec.contracts)


def _contracts(wish: Wish, spec: ProviderSpec, place: Place) -> None:
    for name in wish.contracts:
        if name not in known_versions():
            message = f"nothing is known of the contract {shown(name)}"
            place.error("contract-unknown", message, did_you_mean(name, known_versions()))
            return
    wanted, there = set(wish.contracts), set(spec.contracts)
    if max(wanted) < max(there) or (max(wanted) == max(there) and wanted - there):
        message = f"{listed(sorted(wanted - there or wanted))} is older than {shown(max(there))}"
        hint = "objects that are stored in the newer shape cannot go back: there is no way"
        place.error("contract-backwards", f"{message}, which is followed", hint)
    elif wish.keep_api_version and len(wanted) > 1:
        message = "an API version cannot keep its name where two contracts are followed"
        hint = f"each needs one of its own (GEN-06): name one contract, {shown(max(wanted))}"
        place.error("keep-api-version", message, f"{hint}, or leave --keep-api-version out")
    elif wish.keep_api_version and len(there) > 1 and wanted != there:
        message = "each contract has an API version of its own already"
        place.error("keep-api-version", message, "leave --keep-api-version out")
    elif adds_contract(wish, spec) and not wish.keep_api_version and not there <= wanted:
        _skipped(wanted | there, max(wanted), place)


def _skipped(both: set[str], newest: str, place: Place) -> None:
    hint = (
        f"first --contract {','.join(sorted(both))}, and release that; or, where no core that "
        f"needs the old contract is left, --contract {newest} --keep-api-version"
    )
    place.error("contract-stage-skipped", "no release would serve both contracts", hint)


def _api_version(wish: Wish, spec: ProviderSpec, place: Place) -> None:
    name, there = wish.api_version, [each.name for each in derive.api_versions(spec)]
    if set(wish.contracts) == set(spec.contracts):
        return
    if wish.keep_api_version or not adds_contract(wish, spec):
        message = "this adds no API version that could be named"
        place.error("api-version-unused", message, "leave --api-version out")
    elif not _is(VersionName, name):
        message = f"{shown(name)} is not an API version"
        place.error("spec-not-an-api-version", message, "such as v1alpha2")
    elif name in there:
        message = f"there is an API version {shown(name)} already"
        place.error("api-version-exists", message, "name another; the default is the next one")
    elif derive.version_order(name) < max(map(derive.version_order, there)):
        message = f"{shown(name)} comes before {listed(there)} in Kubernetes' order"
        place.error("api-version-older", message, "name one that comes after all of them")


def _drop(name: str, spec: ProviderSpec, place: Place) -> None:
    versions = {each.name: (each, i) for i, each in enumerate(derive.api_versions(spec))}
    if name not in versions:
        message = f"there is no API version {shown(name)}"
        place.error("drop-unknown", message, f"there are {listed(versions)}")
        return
    version, index = versions[name]
    if version.storage:
        message = f"{shown(name)} is the version that etcd holds"
        place.error("drop-stored", message, "only a version that is served no more can go", index)
    elif version.served:
        message = f"{shown(name)} is still served"
        newest = max(spec.contracts)
        hint = f"first --contract {newest}, and release that"
        if len(spec.contracts) == 1:
            hint = "first write `served: false` at it, and release that"
        place.error("drop-served", message, hint, index)


def _release(wish: Wish, spec: ProviderSpec, place: Place) -> None:
    name = wish.release
    if not _is(SeriesName, name):
        message = f"{shown(name)} is not a release series"
        place.error("CC-05", message, "write v0.2 for v0.2.0, v0.2.1 …")
        return
    newest = max(spec.releases, key=derive.series_order)
    contract = max(wish.contracts or spec.contracts)
    if spec.releases.get(name, contract) != contract:
        message = f"the series {shown(name)} is of the contract {spec.releases[name]} for ever"
        place.error("CC-09", message, "name a series that is not there yet", name)
    elif derive.series_order(name) < derive.series_order(newest):
        message = f"{shown(name)} comes before {shown(newest)}"
        place.error("release-order", message, "name a series that comes after all others")


def _is(form: type[VersionName] | type[SeriesName], text: str) -> bool:
    try:
        form(text)
    except ValueError:
        return False
    return True
