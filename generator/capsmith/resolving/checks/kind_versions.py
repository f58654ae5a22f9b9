"""Check kinds that are in some API versions of the provider only."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from capsmith.provider.draft import Draft, DraftKind, DraftVersion
from capsmith.provider.pools import MACHINES
from capsmith.provider_yaml.kind_parts import TemplateSpec
from capsmith.resolving.checks.names import repeats
from capsmith.resolving.checks.versions import check_contract_labels
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import did_you_mean, listed, shown

if TYPE_CHECKING:
    from capsmith.provider_yaml.kind_parts import ApiVersionSpec


def check_kind_versions(draft: Draft, kind: DraftKind, place: Place) -> None:
    """Report ``kind-version-*``, GEN-02, GEN-08 and MP-07, also for the template of the kind."""
    template = kind.spec.template
    if isinstance(template, TemplateSpec) and template.api_versions is not None:
        here = place.at("template", "apiVersions")
        _named(draft, template.api_versions, kind.template_versions, here)
    if kind.spec.api_versions is None:
        return
    here, names = place.at("apiVersions"), [each.name for each in kind.versions]
    _named(draft, kind.spec.api_versions, kind.versions, here)
    followed = {version.contract for version in kind.versions}
    served = {each.contract for each in draft.api_versions if each.served}
    for contract in sorted(served - followed) if kind.spec.implements != "Resource" else ():
        message = f"{shown(kind.name)} is in no API version that follows {contract}"
        here.error("GEN-08", message, "Add the API version of that contract.")
    known = {each.name for each in draft.api_versions}
    for name in kind.spec.versions or {}:
        if name in known and name not in names:
            message = f"{shown(kind.name)} is not in {shown(name)}"
            hint = "Remove these fields, or add the version to `apiVersions` of the kind."
            place.error_at_key("kind-version-unknown", message, hint, "versions", name)
    _machines(draft, kind, set(names), place)


def _named(
    draft: Draft,
    written: Sequence[str | ApiVersionSpec],
    chosen: Sequence[DraftVersion],
    place: Place,
) -> None:
    names = [each if isinstance(each, str) else each.name for each in written]
    repeats(names, place)
    known = {each.name for each in draft.api_versions}
    for index, name in enumerate(names):
        if name not in known:
            message = f"{shown(name)} is not an API version of this provider"
            hint = did_you_mean(name, known) or "Declare it in `apiVersions` at the top."
            place.error("kind-version-unknown", message, hint, index)
    check_contract_labels(chosen, place)
    stored = [each for each in chosen if each.storage]
    if len(stored) != 1:
        message = f"exactly one version must be the storage version, but {len(stored)} are"
        hint = "Add the storage version of `apiVersions` at the top, or set `storage: true` on one."
        place.error("kind-version-stored", message, hint)
    elif not stored[0].served:
        message = f"{shown(stored[0].name)} is the storage version, so it must be served"
        place.error(
            "GEN-02", message, "Remove `served: false`, or set `storage: true` on another version."
        )


def _machines(draft: Draft, pool: DraftKind, named: Set[str], place: Place) -> None:
    """Core reads the machines of a pool in the version of the pool (MP-07)."""
    if MACHINES not in pool.features or pool.machine_kind is None:
        return
    for kind in draft.kinds:
        own = {each.name for each in kind.versions}
        if kind.name == pool.machine_kind and not named <= own:
            message = f"{shown(kind.name)} is not in {listed(sorted(named - own))}"
            hint = "Give the machines of a pool all API versions of the pool."
            place.error("MP-07", message, hint, "apiVersions")
