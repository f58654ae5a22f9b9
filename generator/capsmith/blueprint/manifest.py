"""The table of blueprints: source, target, scope, condition and owner of each file."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

import yaml

from capsmith.errors import BlueprintError
from capsmith.tree import Owner

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEYS = {"source", "target", "for_each", "when", "owner", "executable"}


class Scope(StrEnum):
    """The objects for each of which a blueprint is rendered once."""

    PROVIDER = "provider"
    COMPONENT = "component"
    RESOURCE = "resource"
    RECONCILED_RESOURCE = "reconciled_resource"
    """Kinds for which the author writes a reconciler: no templates, no identities."""
    TYPED_RESOURCE = "typed_resource"
    """Kinds that have a Python type: those with a reconciler, and identities with own fields."""
    IDENTITY_RESOURCE = "identity_resource"
    CONVERTED_VERSION = "converted_version"
    """API versions of kinds with fields that the author's code converts."""
    FLAVOR = "flavor"
    CLUSTER_CLASS = "cluster_class"
    LEGACY_MODULE = "legacy_module"
    """Import paths of capsmith 0.1 that code of the author may still use."""


class Entry(NamedTuple):
    """One row of ``blueprints/manifest.yaml``."""

    source: str
    """Below ``blueprints/project/``; ends in ``.jinja``."""
    target: str
    """Format string of the path in the provider repository: ``{config}/crd/{crd_name}.yaml``."""
    for_each: Scope
    when: tuple[str, ...]
    """Names of conditions (:mod:`capsmith.blueprint.plan`), all of which must hold."""
    owner: Owner
    executable: bool


def load_manifest(text: str, file: str) -> tuple[Entry, ...]:
    """Read the table.

    Raises BlueprintError on anything but a list of rows with known keys, each source once for
    each target.
    """
    rows = yaml.load(text, Loader=_LOADER)
    if not isinstance(rows, list):
        raise _broken(file, "it must be a list of rows")
    entries = tuple(_entry(row, file) for row in rows)
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        if (entry.source, entry.target) in seen:
            raise _broken(file, f"duplicate row {entry.source} -> {entry.target}")
        seen.add((entry.source, entry.target))
    return entries


def _entry(row: Any, file: str) -> Entry:
    if not isinstance(row, dict) or not {"source", "owner"} <= row.keys() <= _KEYS:
        raise _broken(file, f"a row requires source and owner, and allows {sorted(_KEYS)}: {row!r}")
    source = str(row["source"])
    if not source.endswith(".jinja"):
        raise _broken(file, f"{source} does not end in .jinja")
    when = row.get("when", [])
    try:
        return Entry(
            source=source,
            target=str(row.get("target", source.removesuffix(".jinja"))),
            for_each=Scope(row.get("for_each", Scope.PROVIDER)),
            when=(when,) if isinstance(when, str) else tuple(when),
            owner=Owner(row["owner"]),
            executable=bool(row.get("executable", False)),
        )
    except ValueError as error:
        raise _broken(file, f"{source}: {error}") from error


def _broken(file: str, message: str) -> BlueprintError:
    return BlueprintError(
        "blueprint-manifest", message, file=file, hint="Correct the manifest of the blueprints."
    )
