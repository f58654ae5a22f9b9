"""The API versions of one kind, or of its template: those of the provider, or some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from capsmith.provider.draft import DraftVersion

if TYPE_CHECKING:
    from capsmith.provider_yaml.kind_parts import ApiVersionSpec


def chosen_versions(
    versions: tuple[DraftVersion, ...], written: Sequence[str | ApiVersionSpec] | None
) -> tuple[DraftVersion, ...]:
    """Return the versions that an author names, with what is changed in them.

    Names that are no version are left out; a check reports them.
    """
    if written is None:
        return versions
    named = {each if isinstance(each, str) else each.name: each for each in written}
    found = [_changed(each, named[each.name]) for each in versions if each.name in named]
    stored = {each.name for each in written if not isinstance(each, str) and each.storage}
    if not stored:
        return tuple(found)
    return tuple(each._replace(storage=each.name in stored) for each in found)


def _changed(version: DraftVersion, written: str | ApiVersionSpec) -> DraftVersion:
    if isinstance(written, str):
        return version
    if written.served is not None:
        version = version._replace(served=written.served)
    if written.contract is not None:
        version = version._replace(contract=written.contract)
    if written.deprecated is not None:
        warning = written.deprecation_warning or ""
        version = version._replace(deprecated=written.deprecated, deprecation_warning=warning)
    elif written.deprecation_warning is not None:
        version = version._replace(deprecation_warning=written.deprecation_warning)
    return version
