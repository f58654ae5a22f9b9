"""List the changes between two contract versions that affect a provider's kinds, field by field."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from capsmith.contract.model import ChangeKind, Contract, FieldChange, Where
from capsmith.output.crd import build_version_schema
from capsmith.output.webhooks import has_path
from capsmith.provider.fields import Schema
from capsmith.provider.model import ApiVersion, Provider, Resource
from capsmith.safetext import VersionName


class KindChanges(NamedTuple):
    """The changes to one kind. Its template changes in the same way under ``spec.template``."""

    resource: Resource
    template: Resource | None
    changes: tuple[FieldChange, ...]

    @property
    def wanted(self) -> tuple[FieldChange, ...]:
        """Return the changes to ``spec``, whose fields users write."""
        return tuple(change for change in self.changes if _part(change) == "spec")

    @property
    def seen(self) -> tuple[FieldChange, ...]:
        """Return the changes outside ``spec``, to fields that the manager writes and users read."""
        return tuple(change for change in self.changes if _part(change) != "spec")

    @property
    def lost(self) -> tuple[str, ...]:
        """Return the paths in the old schema that the new schema lacks."""
        return tuple(change.old for change in self.changes if is_lost(change))


class Step(NamedTuple):
    """A provider's move from one contract version to the next."""

    old: Contract
    new: Contract


def list_steps(provider: Provider) -> tuple[Step, ...]:
    """Return the moves between contract versions in a provider's releases, oldest first."""
    released = {release.contract for release in provider.releases}
    contracts = sorted(
        (
            contract
            for contract in (*provider.contracts, *provider.former_contracts)
            if contract.version in released
        ),
        key=lambda contract: contract.version,
    )
    return tuple(Step(old, new) for old, new in pairwise(contracts))


def list_kind_changes(provider: Provider, step: Step) -> tuple[KindChanges, ...]:
    """Return the changes to each affected kind, in the order of the provider's kinds."""
    kinds = {str(resource.kind): resource for resource in provider.resources}
    found = (
        KindChanges(resource, kinds.get(f"{resource.kind}Template"), list_changes(resource, step))
        for resource in provider.resources
        if not resource.role.is_template
    )
    return tuple(each for each in found if each.changes)


def list_changes(resource: Resource, step: Step) -> tuple[FieldChange, ...]:
    """Return the changes to one kind's fields, in the order given in ``schemas/upgrades``.

    Raises KeyError if there is no data for the step.
    """
    old, new = (_schema(resource, contract) for contract in (step.old, step.new))
    upgrade = step.new.upgrades[step.old.version]
    return tuple(
        change
        for change in upgrade.of(resource.role.value)
        if change.where is Where.OBJECT and _applies(change, old, new)
    )


def is_lost(change: FieldChange) -> bool:
    """Return whether the new contract version ignores the field's old path."""
    moved = bool(change.old) and change.old != change.new
    return moved and change.kind is not ChangeKind.COPIED


def find_lost_fields(provider: Provider, step: Step) -> tuple[str, ...]:
    """Return the fields set by users that the step loses unless objects are converted.

    Each is a string with a kind and a path.  Fields that the manager sets again are omitted.
    """
    return tuple(
        f"{each.resource.kind} {change.old}"
        for each in list_kind_changes(provider, step)
        for change in each.wanted
        if is_lost(change) and change.new.startswith("spec.")
    )


def format_paths(change: FieldChange) -> str:
    """Return a changed field's path, or both paths if they differ, as ``old -> new``."""
    paths = dict.fromkeys(path for path in (change.old, change.new) if path)
    return " -> ".join(paths)


def _applies(change: FieldChange, old: Schema, new: Schema) -> bool:
    """Return whether the kind has the changed field, because authors may leave fields out."""
    before, after = _leads(change.old, old), _leads(change.new, new)
    if change.kind is ChangeKind.ADDED:
        return after and not _leads(change.new, old)
    if change.kind is ChangeKind.REMOVED:
        return before and not _leads(change.old, new)
    return before and after


def _leads(dotted: str, schema: Schema) -> bool:
    return bool(dotted and has_path(tuple(dotted.split(".")), schema))


def _schema(resource: Resource, contract: Contract) -> Schema:
    return build_version_schema(resource, ApiVersion(VersionName("v1"), True, True, contract))


def _part(change: FieldChange) -> str:
    return (change.old or change.new).partition(".")[0]
