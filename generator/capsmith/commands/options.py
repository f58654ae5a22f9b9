"""The options of `generate` and `update`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from capsmith.merging.shared_file import Style
from capsmith.output.runtime import Mode


class UpdateOptions(NamedTuple):
    """What the author decides on the command line, besides provider.yaml."""

    style: Style = Style.MERGE
    force: bool = False
    """Replace generated files that were edited."""
    restore: frozenset[str] = frozenset()
    """Files to write again: deleted ones, and scaffolds that capsmith has a new text for."""
    mine: frozenset[str] = frozenset()
    """Files of capsmith that the author takes over."""
    not_mine: frozenset[str] = frozenset()
    """Files that were taken over and are given back."""
    diff: bool = False
    runtime: Mode | None = None
    """The value of `runtime` to write into provider.yaml first; None leaves it as it is."""
    blueprints: Path | None = None
    """The folder of an overlay that provider.yaml does not name."""
    no_blueprints: bool = False
    """Go on without the overlay that was named on the command line before."""
    allow_dirty: bool = False
    """Go on beside uncommitted changes."""
