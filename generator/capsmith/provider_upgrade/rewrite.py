"""Compute ``contracts``, ``apiVersions`` and ``releases`` of provider.yaml after an upgrade."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from capsmith.provider.draft import DEFAULT_API_VERSION, Draft, DraftVersion
from capsmith.provider.versions import series_order, version_order
from capsmith.provider_upgrade.request import UpgradeRequest, adds_contract

if TYPE_CHECKING:
    from capsmith.yamldoc.document import Document

Items = list[Any]
"""API versions as an author writes them: names, or mappings with a name."""


def update_values(request: UpgradeRequest, draft: Draft, document: Document) -> Mapping[str, Any]:
    """Return the new values of the changed keys, by key; empty if nothing changes.

    The request must have passed :func:`capsmith.provider_upgrade.request.validate_request`.
    Unchanged parts keep the author's order and spelling.
    """
    contracts = set(request.contracts or draft.spec.contracts)
    if contracts == set(draft.spec.contracts) and not request.drop:
        return {}
    # From the document, not from the draft: entries keep the author's spelling, and defaults that
    # were never written are not written now.
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
        "contracts": _contracts(contracts, draft),
        "apiVersions": items,
        "releases": _releases(request, max(contracts), document.data["releases"]),
    }
    if "apiVersions" not in document.data and items == [DEFAULT_API_VERSION]:
        del values["apiVersions"]
    return {key: value for key, value in values.items() if document.data.get(key) != value}


def increment_version(names: Iterable[str]) -> str:
    """Return the version after the greatest, at the same level: ``v1alpha1`` -> ``v1alpha2``."""
    return _counted_on(max(names, key=version_order))


def increment_series(names: Iterable[str]) -> str:
    """Return the release series after the greatest: ``v0.1`` -> ``v0.2``."""
    return _counted_on(max(names, key=series_order))


def _counted_on(name: str) -> str:
    return re.sub(r"[0-9]+$", lambda number: str(int(number[0]) + 1), name)


def _contracts(contracts: set[str], draft: Draft) -> list[str]:
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
    # A single entry shows no order: the new one goes last.
    order = [series_order(name) for name in present]
    falling = len(order) > 1 and order == sorted(order, reverse=True)
    return {series: contract, **present} if falling else {**present, series: contract}


def _name(item: Any) -> str:
    return str(item["name"] if isinstance(item, dict) else item)


def _with(item: Any, **values: Any) -> Any:
    return {**(item if isinstance(item, dict) else {"name": item}), **values}
