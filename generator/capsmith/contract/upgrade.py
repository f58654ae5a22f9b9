"""What changes for a provider between two contracts, field by field (``schemas/upgrades``).

Says what differs; converts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from capsmith.contract.reading import Entry, broken, parse

E = TypeVar("E", bound=StrEnum)


class Where(StrEnum):
    """What a path leads into."""

    OBJECT = "object"
    """Objects of the provider's kinds."""
    CORE = "core"
    """Objects of core's kinds that the provider writes."""
    CRD = "crd"
    METADATA = "metadata"
    """metadata.yaml."""


class ChangeKind(StrEnum):
    """How the new contract's field differs from the old one's."""

    MOVED = "moved"
    COPIED = "copied"
    """The old field stays beside the new one."""
    RETYPED = "retyped"
    """Of another JSON type or shape, and perhaps elsewhere."""
    NARROWED = "narrowed"
    """Same place and type; values that were fine are refused."""
    OPTIONAL = "optional"
    """Same place and type; may now be absent."""
    ADDED = "added"
    REMOVED = "removed"


class Conversion(StrEnum):
    """How a value gets from the old field to the new one; the names of functions to be written."""

    AS_IS = "as-is"
    FLAG = "flag"
    """True stays, false becomes absent."""
    TEXT = "text"
    """Null and empty become absent."""
    EMPTY_OBJECT = "empty-object"
    """An object of empty values becomes absent."""
    EMPTY_LIST = "empty-list"
    MAP_TO_LIST = "map-to-list"
    CONDITIONS = "conditions"
    REFERENCE = "reference"
    """``apiVersion`` to ``apiGroup``; the namespace goes."""
    SECONDS = "seconds"
    """A duration as text to whole seconds."""
    COMPLEMENT = "complement"
    """The difference to the whole."""
    NONE = "none"
    """There is nothing to convert from, or to."""


class Actor(StrEnum):
    """Who has to do something; where nobody is named the generator has."""

    GENERATOR = "generator"
    """Capsmith: schema and conversion follow from the data."""
    AUTHOR = "author"
    """The meaning changes, so the provider's code does."""
    USER = "user"


LOSSY = frozenset(
    {
        *(Conversion.NONE, Conversion.CONDITIONS, Conversion.REFERENCE),
        *(Conversion.SECONDS, Conversion.COMPLEMENT),
    }
)
"""Conversions that cannot be undone from their result alone."""


@dataclass(frozen=True, slots=True)
class FieldChange:
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
    """Whether the field is no part of the contract, but many providers have it."""
    note: str


@dataclass(frozen=True, slots=True)
class Upgrade:
    """All differences between two contracts."""

    old: str
    new: str
    source: str
    changes: tuple[FieldChange, ...]

    def of(self, role: str) -> tuple[FieldChange, ...]:
        """The changes of the kinds of one role."""
        return tuple(change for change in self.changes if role in change.roles)


def load_upgrade(reader: Traversable, old: str, new: str) -> Upgrade:
    """The differences from ``old`` to ``new`` out of the schemas folder ``reader``.

    Raises ValueError where there are none on record, UnreadableInput for broken data.
    """
    file = reader / "upgrades" / f"{old}-to-{new}.yaml"
    if not file.is_file():
        raise ValueError(f"there is no upgrade from {old} to {new}")
    top = Entry(parse(file.read_text(encoding="utf-8"), str(file)), str(file))
    if (top.take("from", str), top.take("to", str)) != (old, new):
        raise top.error("is of other versions than its name")
    source = top.take("source", str)
    entries = top.take("changes", list)
    top.close()
    return Upgrade(old, new, source, tuple(_change(entry, str(file)) for entry in entries))


def _change(data: Any, file: str) -> FieldChange:
    entry = Entry(data, file, "a change")
    conversion = _member(entry, "conversion", Conversion, Conversion.AS_IS)
    path = entry.take("path", str, "")
    change = FieldChange(
        where=_member(entry, "where", Where, Where.OBJECT),
        roles=entry.texts("roles") if entry.has("roles") else (),
        kind=_member(entry, "kind", ChangeKind),
        old=path or entry.take("old", str, ""),
        new=path or entry.take("new", str, ""),
        conversion=conversion,
        lossless=entry.take("lossless", bool, conversion not in LOSSY),
        rules=entry.texts("rules") if entry.has("rules") else (),
        who=_actors(entry),
        habit=entry.take("habit", bool, False),
        note=entry.take("note", str),
    )
    entry.close()
    _coherent(change, file)
    return change


def _coherent(change: FieldChange, file: str) -> None:
    """Raises UnreadableInput when kind and paths do not go together."""
    paths = {
        ChangeKind.ADDED: (False, True),
        ChangeKind.REMOVED: (True, False),
    }.get(change.kind, (True, True))
    name = f"{change.kind} {change.old or change.new}"
    if (bool(change.old), bool(change.new)) != paths:
        raise broken(file, f"{name} has not the paths of its kind")
    stays = change.kind in {ChangeKind.NARROWED, ChangeKind.OPTIONAL}
    if stays and change.old != change.new:
        raise broken(file, f"{name} changes its path")
    if not change.roles and change.where in {Where.OBJECT, Where.CORE}:
        raise broken(file, f"{name} is of no role")


def _actors(entry: Entry) -> tuple[Actor, ...]:
    if not entry.has("who"):
        return (Actor.GENERATOR,)
    try:
        return tuple(Actor(name) for name in entry.texts("who"))
    except ValueError as error:
        raise entry.error(f"names an unknown actor: {error}") from None


def _member(entry: Entry, key: str, kind: type[E], default: E | None = None) -> E:
    text = entry.take(key, str, None if default is None else default.value)
    try:
        return kind(text)
    except ValueError:
        raise entry.error(f"has {text!r} for {key!r}") from None
