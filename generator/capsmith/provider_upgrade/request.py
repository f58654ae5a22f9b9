"""Validate requests to change contract and API versions, and compute the new provider.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from capsmith.contract.load import list_versions
from capsmith.findings import Finding
from capsmith.provider.draft import DEFAULT_API_VERSION, Draft, DraftKind, DraftVersion
from capsmith.provider.versions import rank_api_version, rank_series
from capsmith.safetext import SeriesName, VersionName
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import join_names, quote, suggest

if TYPE_CHECKING:
    from capsmith.yamldoc.document import Document


@dataclass(frozen=True, slots=True)
class UpgradeRequest:
    """The options for ``capsmith update`` that change contract versions. Unset ones are empty."""

    contracts: tuple[str, ...] = ()
    """Contract versions that the provider will have after the change."""
    api_version: str = ""
    """Name of the API version to add for the new contract version."""
    keep_api_version: bool = False
    """Whether API versions keep their names even though their fields change."""
    drop: tuple[str, ...] = ()
    """Names of the API versions to remove."""
    release: str = ""
    """Release series that contains the change; empty for the next minor release."""


def validate_request(
    request: UpgradeRequest, draft: Draft, document: Document
) -> tuple[Finding, ...]:
    """Return the errors in a request, given the provider's valid description.

    Ids: ``contract-unknown``, ``contract-backwards``, ``contract-stage-skipped``,
    ``keep-api-version``, ``api-version-*``, ``drop-*``, CC-09 and ``release-*``.
    """
    findings: list[Finding] = []
    top = PathReporter(document, (), findings)
    versions = top.at("apiVersions" if "apiVersions" in document.data else "contracts")
    if request.contracts:
        _contracts(request, draft, top.at("contracts"))
    if not findings and request.api_version:
        _api_version(request, draft, versions)
    for name in request.drop:
        _drop(name, draft, versions)
        _fields(name, draft, top)
    if request.release:
        _release(request, draft, top.at("releases"))
    return tuple(findings)


def adds_contract(request: UpgradeRequest, draft: Draft) -> bool:
    """Return whether the request adds a contract version newer than any of the provider's."""
    return max(request.contracts) > max(draft.spec.contracts)


def _contracts(request: UpgradeRequest, draft: Draft, reporter: PathReporter) -> None:
    for name in request.contracts:
        if name not in list_versions():
            message = f"unknown contract {quote(name)}"
            reporter.add_error("contract-unknown", message, suggest(name, list_versions()))
            return
    requested, followed = set(request.contracts), set(draft.spec.contracts)
    if max(requested) < max(followed) or (max(requested) == max(followed) and requested - followed):
        older = join_names(sorted(requested - followed or requested))
        message = f"{older} is older than {quote(max(followed))}"
        hint = "Keep the newer contract: objects stored in its shape cannot be converted back."
        reporter.add_error("contract-backwards", f"{message}, which is followed", hint)
    elif request.keep_api_version and len(requested) > 1:
        message = "API versions cannot keep their names while two contracts are followed"
        hint = (
            f"Specify one contract, {quote(max(requested))}: each requires its own version (GEN-06)"
        )
        reporter.add_error("keep-api-version", message, f"{hint}; or omit --keep-api-version.")
    elif request.keep_api_version and len(followed) > 1 and requested != followed:
        message = "each contract already has its own API version"
        reporter.add_error("keep-api-version", message, "Omit --keep-api-version.")
    elif (
        adds_contract(request, draft) and not request.keep_api_version and not followed <= requested
    ):
        _skipped(requested | followed, max(requested), reporter)


def _skipped(both: set[str], newest: str, reporter: PathReporter) -> None:
    hint = (
        f"Run --contract {','.join(sorted(both))} first, and release that.  If no management "
        f"cluster needs the old contract, run --contract {newest} --keep-api-version."
    )
    reporter.add_error("contract-stage-skipped", "no release would serve both contracts", hint)


def _api_version(request: UpgradeRequest, draft: Draft, reporter: PathReporter) -> None:
    name, names = request.api_version, [each.name for each in draft.api_versions]
    if set(request.contracts) == set(draft.spec.contracts):
        return
    if request.keep_api_version or not adds_contract(request, draft):
        message = "no API version is added, so there is nothing to name"
        reporter.add_error("api-version-unused", message, "Omit --api-version.")
    elif not _is(VersionName, name):
        message = f"{quote(name)} is not an API version"
        reporter.add_error("spec-not-an-api-version", message, "Write a version such as v1alpha2.")
    elif name in names:
        message = f"the API version {quote(name)} already exists"
        reporter.add_error(
            "api-version-exists", message, "Choose another version; the default is the next one."
        )
    elif rank_api_version(name) < max(map(rank_api_version, names)):
        message = (
            f"{quote(name)} sorts before {join_names(names)} in the version order of Kubernetes"
        )
        reporter.add_error(
            "api-version-older", message, "Choose a version that sorts after all of them."
        )


def _drop(name: str, draft: Draft, reporter: PathReporter) -> None:
    versions = {each.name: (each, i) for i, each in enumerate(draft.api_versions)}
    if name not in versions:
        message = f"unknown API version {quote(name)}"
        reporter.add_error("drop-unknown", message, f"Use one of: {join_names(versions)}.")
        return
    version, index = versions[name]
    # A version stops being stored and served in one release, and is removed in a later one. In
    # between, managers rewrite the objects that are stored in it.
    if version.storage:
        message = f"{quote(name)} is the storage version"
        reporter.add_error(
            "drop-stored", message, "Stop serving and storing the version first.", index
        )
    elif naming := [each.name for each in draft.kinds if name in _named_in(each)]:
        message = f"{join_names(naming)} name {quote(name)} in `apiVersions`"
        reporter.add_error("drop-named", message, "Remove it there first.", index)
    elif version.served:
        message = f"{quote(name)} is still served"
        newest = max(draft.spec.contracts)
        hint = f"Run --contract {newest} first, and release that."
        if len(draft.spec.contracts) == 1:
            hint = "Add `served: false` to it first, and release that."
        reporter.add_error("drop-served", message, hint, index)


def _named_in(kind: DraftKind) -> set[str]:
    """Return the names of the API versions that a kind or its template lists."""
    template = kind.spec.template
    own = None if template is None or isinstance(template, bool) else template.api_versions
    written = (*(kind.spec.api_versions or ()), *(own or ()))
    return {each if isinstance(each, str) else each.name for each in written}


def _fields(name: str, draft: Draft, top: PathReporter) -> None:
    """Report kinds with their own fields in version ``name``, which the request removes."""
    for kind in draft.kinds:
        if name in (kind.spec.versions or {}):
            message = f"{quote(kind.name)} has its own fields in {quote(name)}"
            hint = "Remove them and repeat the command."
            if len(kind.spec.versions or {}) == 1:
                hint = "Write `versions: {}` and repeat the command: the CRD keeps its webhook."
            reporter = top.at(kind.section, kind.name, "versions", name)
            reporter.add_error_at_key("drop-fields", message, hint)


def _release(request: UpgradeRequest, draft: Draft, reporter: PathReporter) -> None:
    name = request.release
    if not _is(SeriesName, name):
        message = f"{quote(name)} is not a release series"
        reporter.add_error("CC-05", message, "Write v0.2 for v0.2.0, v0.2.1 and so on.")
        return
    newest = draft.series[0]
    contract = max(request.contracts or draft.spec.contracts)
    if draft.spec.releases.get(name, contract) != contract:
        message = (
            f"the series {quote(name)} has contract {draft.spec.releases[name]}: it cannot change"
        )
        reporter.add_error("CC-09", message, "Choose a series that does not exist yet.", name)
    elif rank_series(name) < rank_series(newest):
        message = f"{quote(name)} is older than {quote(newest)}"
        reporter.add_error(
            "release-order", message, "Choose a series that is newer than all others."
        )


def _is(form: type[VersionName] | type[SeriesName], text: str) -> bool:
    try:
        form(text)
    except ValueError:
        return False
    return True


Items = list[Any]
"""API versions in the author's form: names, or mappings with a name."""


def update_values(request: UpgradeRequest, draft: Draft, document: Document) -> Mapping[str, Any]:
    """Return the new values for the keys in provider.yaml that change; empty if nothing changes.

    The request must have passed :func:`capsmith.provider_upgrade.request.validate_request`.
    Unchanged parts keep the author's order and spelling.
    """
    contracts = set(request.contracts or draft.spec.contracts)
    if contracts == set(draft.spec.contracts) and not request.drop:
        return {}
    # From the document and not from the draft, so that entries keep the author's spelling and
    # defaults are not written out.
    items: Items = list(document.data.get("apiVersions") or [DEFAULT_API_VERSION])
    versions = draft.api_versions
    if request.drop:
        items = [item for item in items if _name(item) not in request.drop]
    elif not adds_contract(request, draft):
        items = [
            _with(item, served=False) if each.served and each.contract not in contracts else item
            for item, each in zip(items, versions, strict=True)
        ]
    elif request.keep_api_version:
        items = [_reshaped(item, max(contracts)) for item in items]
    else:
        items = [_older(item, each) for item, each in zip(items, versions, strict=True)]
        name = request.api_version or increment_version(each.name for each in versions)
        items.append({"name": name, "contract": max(contracts), "storage": True})
    values = {
        "contracts": _list_contracts(contracts, draft),
        "apiVersions": items,
        "releases": _releases(request, max(contracts), document.data["releases"]),
    }
    if "apiVersions" not in document.data and items == [DEFAULT_API_VERSION]:
        del values["apiVersions"]
    return {key: value for key, value in values.items() if document.data.get(key) != value}


def increment_version(names: Iterable[str]) -> str:
    """Return the version after the highest one, at the same level: ``v1alpha1`` -> ``v1alpha2``."""
    return _counted_on(max(names, key=rank_api_version))


def increment_series(names: Iterable[str]) -> str:
    """Return the release series after the highest one: ``v0.1`` -> ``v0.2``."""
    return _counted_on(max(names, key=rank_series))


def _counted_on(name: str) -> str:
    return re.sub(r"[0-9]+$", lambda number: str(int(number[0]) + 1), name)


def _list_contracts(contracts: set[str], draft: Draft) -> list[str]:
    kept = [name for name in draft.spec.contracts if name in contracts]
    return kept + sorted(contracts - set(kept))


def _reshaped(item: Any, contract: str) -> Any:
    """Return an API version with the new contract, if it names one itself."""
    is_explicit = isinstance(item, dict) and "contract" in item
    return _with(item, contract=contract) if is_explicit else item


def _older(item: Any, version: DraftVersion) -> Any:
    """Return a version that is no longer stored, with its contract written out."""
    given = item if isinstance(item, dict) else {}
    demoted = {"storage": False} if given.get("storage") else {}
    return _with(item, **({} if "contract" in given else {"contract": version.contract}), **demoted)


def _releases(request: UpgradeRequest, contract: str, present: Mapping[str, str]) -> dict[str, str]:
    """Return the release series with the new one added, first if the newest is written first.

    Existing series never change (CC-09).
    """
    series = request.release or increment_series(present)
    # A single entry shows no order, so the new one goes last.
    order = [rank_series(name) for name in present]
    falling = len(order) > 1 and order == sorted(order, reverse=True)
    return {series: contract, **present} if falling else {**present, series: contract}


def _name(item: Any) -> str:
    return str(item["name"] if isinstance(item, dict) else item)


def _with(item: Any, **values: Any) -> Any:
    return {**(item if isinstance(item, dict) else {"name": item}), **values}
