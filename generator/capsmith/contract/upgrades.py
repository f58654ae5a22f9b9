"""Load the differences between contract versions from ``schemas/upgrades``."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from capsmith.contract.model import (
    ChangeKind,
    ConditionType,
    CoreSteps,
    FieldChange,
    FieldConversion,
    Upgrade,
    Where,
)
from capsmith.contract.reading import load, make_error, validate

if TYPE_CHECKING:
    from capsmith.contract.files import ChangeEntry

LOSSY = frozenset(
    {
        *(FieldConversion.NONE, FieldConversion.CONDITIONS, FieldConversion.REFERENCE),
        *(FieldConversion.SECONDS, FieldConversion.COMPLEMENT),
    }
)
"""Conversions that lose information, so that converting back cannot restore the old value."""


def load_upgrade(reader: Traversable, old: str, new: str) -> Upgrade:
    """Load the differences between two contract versions from the schemas folder ``reader``.

    Raises ValueError if no differences are recorded, and UnreadableInput for invalid data.
    """
    from capsmith.contract.files import UpgradeFile  # builds pydantic models

    file = reader / "upgrades" / f"{old}-to-{new}.yaml"
    if not file.is_file():
        raise ValueError(f"no upgrade from {old} to {new}")
    content = validate(UpgradeFile, load(file), str(file))
    if (content.old, content.new) != (old, new):
        raise make_error(str(file), "describes other versions than its name")
    changes = tuple(_change(entry, str(file)) for entry in content.changes)
    core_steps = CoreSteps(**content.core_steps.model_dump())
    conditions = tuple(
        ConditionType(tuple(each.roles), each.type, tuple(each.rules), each.note)
        for each in content.conditions
    )
    return Upgrade(old, new, content.source, core_steps, conditions, changes)


def _change(entry: ChangeEntry, file: str) -> FieldChange:
    if entry.path and (entry.old or entry.new):
        raise make_error(
            file, f"{entry.kind} {entry.path} has a path, so that it cannot have old, new"
        )
    lossless = entry.conversion not in LOSSY if entry.lossless is None else entry.lossless
    change = FieldChange(
        where=entry.where,
        roles=tuple(entry.roles),
        kind=entry.kind,
        old=entry.path or entry.old,
        new=entry.path or entry.new,
        conversion=entry.conversion,
        lossless=lossless,
        rules=tuple(entry.rules),
        who=tuple(entry.who),
        habit=entry.habit,
        note=entry.note,
    )
    _require_coherent_change(change, file)
    return change


def _require_coherent_change(change: FieldChange, file: str) -> None:
    """Raise UnreadableInput if the kind of a change does not match its paths.

    ``file`` is named in the message.
    """
    paths = {
        ChangeKind.ADDED: (False, True),
        ChangeKind.REMOVED: (True, False),
    }.get(change.kind, (True, True))
    name = f"{change.kind} {change.old or change.new}"
    if (bool(change.old), bool(change.new)) != paths:
        raise make_error(file, f"{name} does not have the paths of its kind")
    stays = change.kind in {ChangeKind.NARROWED, ChangeKind.OPTIONAL}
    if stays and change.old != change.new:
        raise make_error(file, f"{name} changes its path")
    if not change.roles and change.where in {Where.OBJECT, Where.CORE}:
        raise make_error(file, f"{name} does not name a role")
