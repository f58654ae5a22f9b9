"""``contracts``, ``apiVersions`` and ``releases`` of provider.yaml when a wish is granted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from capsmith.provider import derive
from capsmith.provider.upgrade.wish import Wish, adds_contract

if TYPE_CHECKING:
    from capsmith.spec.document import Document
    from capsmith.spec.model import ProviderSpec

Items = list[Any]
"""API versions as an author writes them: names, or mappings with a name."""


def rewritten(wish: Wish, spec: ProviderSpec, document: Document) -> Mapping[str, Any]:
    """The values of the keys that change, by key; none when there is nothing to do.

    The wish is one that :func:`capsmith.provider.upgrade.wish.nonsense` finds no fault with.
    What stays is in the author's order and words.
    """
    wanted = set(wish.contracts or spec.contracts)
    if wanted == set(spec.contracts) and not wish.drop:
        return {}
    items: Items = list(document.data.get("apiVersions") or [derive.DEFAULT_API_VERSION])
    versions = derive.api_versions(spec)
    if wish.drop:
        items = [item for item in items if _name(item) not in wish.drop]
    elif not adds_contract(wish, spec):
        items = [
            _with(item, served=False) if each.served and each.contract not in wanted else item
            for item, each in zip(items, versions, strict=True)
        ]
    elif wish.keep_api_version:
        items = [_reshaped(item, max(wanted)) for item in items]
    else:
        items = [_older(item, each) for item, each in zip(items, versions, strict=True)]
        name = wish.api_version or next_version(each.name for each in versions)
        items.append({"name": name, "contract": max(wanted), "storage": True})
    values = {
        "contracts": _contracts(wanted, spec),
        "apiVersions": items,
        "releases": _releases(wish, max(wanted), document.data["releases"]),
    }
    if "apiVersions" not in document.data and items == [derive.DEFAULT_API_VERSION]:
        del values["apiVersions"]
    return {key: value for key, value in values.items() if document.data.get(key) != value}


def next_version(names: Iterable[str]) -> str:
    """The one after the greatest, at its level: ``v1alpha1`` -> ``v1alpha2``, ``v1`` -> ``v2``."""
    return _counted_on(max(names, key=derive.version_order))


def next_series(names: Iterable[str]) -> str:
    """The minor after the greatest series: ``v0.1`` -> ``v0.2``."""
    return _counted_on(max(names, key=derive.series_order))


def _counted_on(name: str) -> str:
    return re.sub(r"[0-9]+$", lambda number: str(int(number[0]) + 1), name)


def _contracts(wanted: set[str], spec: ProviderSpec) -> list[str]:
    kept = [name for name in spec.contracts if name in wanted]
    return kept + sorted(wanted - set(kept))


def _reshaped(item: Any, contract: str) -> Any:
    """An API version of another contract; where that is not said, it follows from the one."""
    said = isinstance(item, dict) and "contract" in item
    return _with(item, contract=contract) if said else item


def _older(item: Any, version: derive.Versioned) -> Any:
    """An API version beside which a newer one is stored."""
    given = item if isinstance(item, dict) else {}
    demoted = {"storage": False} if given.get("storage") else {}
    return _with(item, **({} if "contract" in given else {"contract": version.contract}), **demoted)


def _releases(wish: Wish, contract: str, there: Mapping[str, str]) -> dict[str, str]:
    """Newest first if the author writes them so; a series that is there never changes (CC-09)."""
    series = wish.release or next_series(there)
    order = [derive.series_order(name) for name in there]
    falling = len(order) > 1 and order == sorted(order, reverse=True)
    return {series: contract, **there} if falling else {**there, series: contract}


def _name(item: Any) -> str:
    return str(item["name"] if isinstance(item, dict) else item)


def _with(item: Any, **values: Any) -> Any:
    return {**(item if isinstance(item, dict) else {"name": item}), **values}
