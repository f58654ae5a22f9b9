"""Hooks of Cluster API's runtime SDK (``schemas/contracts/common/hooks.yaml``)."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import NamedTuple

from capsmith.contract.reading import broken, load, validate
from capsmith.contract.terms import HookFamily


class Hook(NamedTuple):
    """One hook of the runtime SDK: its name, family and purpose (RX-05)."""

    name: str
    """``GeneratePatches``."""
    family: HookFamily
    statement: str
    """When core calls it, and what for."""
    since: str
    """First release of core that knows it; empty: every release with runtime extensions."""


def load_hooks(reader: Traversable) -> dict[str, Hook]:
    """Return all hooks by name, from the schemas folder ``reader``.

    Raises UnreadableInput for broken data.
    """
    from capsmith.contract.files import HooksFile  # builds pydantic models

    file = reader / "contracts" / "common" / "hooks.yaml"
    content = validate(HooksFile, load(file), str(file))
    hooks: dict[str, Hook] = {}
    for entry in content.hooks:
        if entry.hook in hooks:
            raise broken(str(file), f"duplicate hook {entry.hook}")
        hooks[entry.hook] = Hook(entry.hook, entry.family, entry.statement, entry.since)
    return hooks
