"""The stages between two contract versions: their releases and requirements, and which is next.

Opens no files.  Each stage is a release series, so a provider can stay at any stage.
"""

from __future__ import annotations

from dataclasses import dataclass

from capsmith.contract.model import Contract
from capsmith.output.webhooks import has_conversion
from capsmith.provider.model import ApiVersion, Provider
from capsmith.provider_upgrade.changes import (
    KindChanges,
    Step,
    find_lost_fields,
    is_lost,
    list_kind_changes,
)
from capsmith.provider_upgrade.request import increment_series, increment_version

_UPDATE = "capsmith update"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage in an upgrade. A single command completes it."""

    title: str
    command: str
    series: str
    """Release series that completed the stage; empty if provider.yaml no longer lists it."""
    contracts: tuple[str, ...]
    asks: tuple[str, ...]
    """What the stage requires of management clusters, and of authors of manifests."""
    done: bool


@dataclass(frozen=True, slots=True)
class InPlaceUpgrade:
    """An in-place upgrade, in which API versions keep their names but change their fields."""

    command: str
    costs: tuple[str, ...]


def find_next_step(provider: Provider, known: tuple[Contract, ...]) -> Step | None:
    """Return the last step that a provider has begun, even if it is complete.

    For a provider that has had only one contract version, return the step to the next one, or None
    if there is no newer one.
    """
    followed = [*provider.former_contracts, *provider.contracts]
    names = sorted({contract.version for contract in followed})
    # A provider that has followed more than two contracts is at the last step.
    if len(names) > 1:
        by_name = {contract.version: contract for contract in followed}
        return Step(by_name[names[-2]], by_name[names[-1]])
    newer = [contract for contract in known if contract.version > names[0]]
    return Step(followed[0], newer[0]) if newer else None


def list_stages(provider: Provider, step: Step) -> tuple[Stage, ...]:
    """Return the stages of ``step``. Stages that provider.yaml has completed are marked as done."""
    at = _position(provider, step)
    both = tuple(sorted((step.old.version, step.new.version)))
    series = _series(provider, at)
    names = _old_names(provider, step)
    drops = "".join(f" --drop-api-version {name}" for name in names)
    found = (
        Stage(
            "both contracts",
            f"{_UPDATE} --contract {','.join(both)}",
            series[0],
            both,
            _asks_of_both(provider, step),
            at >= 1,
        ),
        Stage(
            f"{step.new.version} only",
            f"{_UPDATE} --contract {step.new.version}",
            series[1],
            (step.new.version,),
            _asks_of_one(provider, step),
            at >= 2,
        ),
        Stage(
            "older API versions removed",
            f"{_UPDATE}{drops}" if drops else "",
            series[2],
            (step.new.version,),
            _asks_of_drop(provider, step),
            at >= 3,
        ),
    )
    # Without kinds there are no API versions to remove.
    return found if _versions(provider) else found[:2]


def find_in_place_upgrade(provider: Provider, step: Step) -> InPlaceUpgrade | None:
    """Return the in-place upgrade, or None if it is not possible.

    It is not possible if a new API version exists, or if fields would be lost.
    """
    if _position(provider, step) > 0 or find_lost_fields(provider, step):
        return None
    command = f"{_UPDATE} --contract {step.new.version} --keep-api-version"
    return InPlaceUpgrade(command, list_costs(provider, step))


def list_costs(provider: Provider, step: Step) -> tuple[str, ...]:
    """Return sentences about how an in-place upgrade affects the provider's operators."""
    kinds = list_kind_changes(provider, step)
    newest, former = _releases(provider, step)
    moved = [
        f"{each.resource.kind} {change.old}"
        for each in kinds
        for change in each.wanted
        if is_lost(change)
    ]
    return (
        f"{newest} works with core {step.new.core} only; older management clusters must stay on "
        f"{former or 'older releases'}.",
        "Manifests with these fields must be changed at the time of the upgrade: "
        f"{', '.join(moved) or 'none of your kinds has any'}.",
        "The API server no longer returns these old fields, and drops them at the next write of "
        f"an object: {_lost(kinds)}.",
        f"A return to {former or 'older releases'} is impossible: dropped fields are not kept.",
        "Patches of ClusterClasses with such fields must be changed at the same time.",
    )


def _lost(kinds: tuple[KindChanges, ...]) -> str:
    paths = dict.fromkeys(path for each in kinds for path in each.lost)
    return ", ".join(paths) or "none"


def _releases(provider: Provider, step: Step) -> tuple[str, str]:
    """Return the first release series of the new contract, and the last series before it."""
    of_new = [str(each.series) for each in provider.releases if each.contract == step.new.version]
    of_old = [str(each.series) for each in provider.releases if each.contract == step.old.version]
    former = of_old[0] if of_old else ""
    return (of_new[-1] if of_new else increment_series(of_old)), former


def _position(provider: Provider, step: Step) -> int:
    """Return the number of stages that provider.yaml has completed."""
    followed = {contract.version for contract in provider.contracts}
    if step.new.version not in followed:
        return 0
    if step.old.version in followed:
        return 1
    return 2 if _old_names(provider, step, unserved=True) else 3


def _versions(provider: Provider) -> tuple[ApiVersion, ...]:
    """Return the API versions, which are the same for all kinds."""
    return next((resource.versions for resource in provider.resources), ())


def _old_names(provider: Provider, step: Step, *, unserved: bool = False) -> tuple[str, ...]:
    return tuple(
        str(version.name)
        for version in _versions(provider)
        if version.contract == step.old and not (unserved and version.served)
    )


def _new_name(provider: Provider, step: Step) -> str:
    versions = _versions(provider)
    new = [str(version.name) for version in versions if version.contract == step.new]
    if new:
        return new[-1]
    return increment_version(str(version.name) for version in versions) if versions else ""


def _series(provider: Provider, at: int) -> tuple[str, str, str]:
    """Return the series of each stage; the newest series is the last completed stage's."""
    names = [str(release.series) for release in provider.releases]
    found = ["", "", ""]
    if at > 0:
        found[at - 1] = names[0]
    for place in range(at, 3):
        names.insert(0, increment_series(names))
        found[place] = names[0]
    return found[0], found[1], found[2]


def _asks_of_both(provider: Provider, step: Step) -> tuple[str, ...]:
    new, old = _new_name(provider, step), ", ".join(_old_names(provider, step))
    asks = [
        f"Core {step.new.core}, upgraded before or in the same clusterctl upgrade apply: the "
        f"clusterctl of an older core rejects releases of contract {step.new.version}."
    ]
    if new and (has_conversion(provider) or _position(provider, step) == 0):
        asks.append("cert-manager for the conversion webhook; clusterctl installs cert-manager.")
    if new:
        asks.append(f"Manifests may still use {old}; the manager rewrites stored objects in {new}.")
    return tuple(asks)


def _asks_of_one(provider: Provider, step: Step) -> tuple[str, ...]:
    old, new = ", ".join(_old_names(provider, step)), _new_name(provider, step)
    if not new:
        return (f"Core {step.new.core}.",)
    return (
        f"Manifests, ClusterClasses and their patches use {new} instead of "
        f"{old or 'older API versions'} before the release is installed: the API server refuses "
        "versions that are not served.",
    )


def _asks_of_drop(provider: Provider, step: Step) -> tuple[str, ...]:
    old = ", ".join(_old_names(provider, step)) or "an older version"
    return (
        f"A release of an earlier stage has run until no CRD lists {old} in "
        "status.storedVersions: otherwise the API server refuses the new CRDs.",
    )
