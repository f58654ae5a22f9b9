"""Hooks of Cluster API's runtime SDK (``schemas/contracts/common/hooks.yaml``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib.resources.abc import Traversable

from capsmith.contract.reading import Entry, broken, parse


class HookFamily(StrEnum):
    """What hooks are about; each family is served by code of its own."""

    TOPOLOGY = "topology"
    LIFECYCLE = "lifecycle"
    UPGRADE_PLAN = "upgrade-plan"
    IN_PLACE = "in-place"


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook (RX-05)."""

    name: str
    """``GeneratePatches``."""
    family: HookFamily
    statement: str
    """When core calls it, and what for."""
    since: str
    """Release of core that knows it first; empty: all that runtime extensions are for."""


def load_hooks(reader: Traversable) -> dict[str, Hook]:
    """All hooks by name, out of the schemas folder ``reader``.

    Raises UnreadableInput for broken data.
    """
    file = reader / "contracts" / "common" / "hooks.yaml"
    label = str(file)
    try:
        data = parse(file.read_text(encoding="utf-8"), label)
    except OSError as error:
        raise broken(label, f"cannot be read: {error.strerror}") from error
    top = Entry(data, label)
    top.take("source", str)
    entries = top.take("hooks", list)
    top.close()
    hooks = [_hook(Entry(entry, label, f"hook {n}")) for n, entry in enumerate(entries, start=1)]
    by_name = {hook.name: hook for hook in hooks}
    if len(by_name) < len(hooks):
        raise broken(label, "a hook is there twice")
    return by_name


def _hook(entry: Entry) -> Hook:
    family = entry.take("family", str)
    if family not in list(HookFamily):
        raise entry.error(f"is of no family {family!r}")
    hook = Hook(
        name=entry.take("hook", str),
        family=HookFamily(family),
        statement=entry.take("statement", str),
        since=entry.take("since", str, ""),
    )
    entry.close()
    return hook
