"""The differences between two contracts for a provider, field by field (``schemas/upgrades``).

Only describes them; converts nothing.
"""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, NamedTuple

from capsmith.contract.reading import broken, load, validate
from capsmith.contract.terms import Actor, ChangeKind, Conversion, Where

if TYPE_CHECKING:
    from capsmith.contract.files import ChangeEntry


LOSSY = frozenset(
    {
        *(Conversion.NONE, Conversion.CONDITIONS, Conversion.REFERENCE),
        *(Conversion.SECONDS, Conversion.COMPLEMENT),
    }
)
"""Conversions that cannot be undone from their result alone."""


class FieldChange(NamedTuple):
    """One difference."""

    where: Where
    roles: tuple[str, ...]
    """Roles, or kinds of core; empty for CRDs and metadata.yaml."""
    kind: ChangeKind
    old: str
    """Dotted path; empty for what is added."""
    new: str
    """Dotted path; empty for what is removed."""
    conversion: Conversion
    lossless: bool
    """Whether old -> new -> old gives the same without the conversion-data annotation."""
    rules: tuple[str, ...]
    who: tuple[Actor, ...]
    habit: bool
    """Whether the field is no part of the contract, but a habit of many providers."""
    note: str


class CoreSteps(NamedTuple):
    """How far clusterctl upgrades core, and kubeadm's providers, in one command."""

    since: str
    """The first release of core from which clusterctl refuses longer steps: ``v1.10``."""
    minors: int
    """The most minor releases of one step."""
    source: str

    @property
    def path(self) -> tuple[str, ...]:
        """Return the releases of the longest steps, from the first on: ``v1.10``, ``v1.13``."""
        major, _, minor = self.since.partition(".")
        return tuple(f"{major}.{int(minor) + count * self.minors}" for count in range(3))


class Upgrade(NamedTuple):
    """All differences between two contracts."""

    old: str
    new: str
    source: str
    core_steps: CoreSteps
    changes: tuple[FieldChange, ...]

    def of(self, role: str) -> tuple[FieldChange, ...]:
        """Return the changes of the kinds of one role."""
        return tuple(change for change in self.changes if role in change.roles)


def load_upgrade(reader: Traversable, old: str, new: str) -> Upgrade:
    """Return the differences from ``old`` to ``new``, from the schemas folder ``reader``.

    Raises ValueError where there are none on record, UnreadableInput for broken data.
    """
    from capsmith.contract.files import UpgradeFile  # builds pydantic models

    file = reader / "upgrades" / f"{old}-to-{new}.yaml"
    if not file.is_file():
        raise ValueError(f"no upgrade from {old} to {new}")
    content = validate(UpgradeFile, load(file), str(file))
    if (content.old, content.new) != (old, new):
        raise broken(str(file), "describes other versions than its name")
    changes = tuple(_change(entry, str(file)) for entry in content.changes)
    steps = content.core_steps
    core_steps = CoreSteps(steps.since, steps.minors, steps.source)
    return Upgrade(old, new, content.source, core_steps, changes)


def _change(entry: ChangeEntry, file: str) -> FieldChange:
    if entry.path and (entry.old or entry.new):
        raise broken(file, f"{entry.kind} {entry.path} has a path, so that it cannot have old, new")
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
    _require_coherence(change, file)
    return change


def _require_coherence(change: FieldChange, file: str) -> None:
    """Raise UnreadableInput when kind and paths do not go together."""
    paths = {
        ChangeKind.ADDED: (False, True),
        ChangeKind.REMOVED: (True, False),
    }.get(change.kind, (True, True))
    name = f"{change.kind} {change.old or change.new}"
    if (bool(change.old), bool(change.new)) != paths:
        raise broken(file, f"{name} does not have the paths of its kind")
    stays = change.kind in {ChangeKind.NARROWED, ChangeKind.OPTIONAL}
    if stays and change.old != change.new:
        raise broken(file, f"{name} changes its path")
    if not change.roles and change.where in {Where.OBJECT, Where.CORE}:
        raise broken(file, f"{name} does not name a role")
