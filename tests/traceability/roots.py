"""The folders that are searched; no other module names them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SourceRoot:
    """A folder below the repository's root; empty if it does not exist."""

    folder: str
    suffix: str = ".py"
    excluded: tuple[str, ...] = ()
    """Beginnings and parts of paths that are passed over."""
    copied_to: str = ""
    """Where the folder's files are in a generated repository; empty: they are not copied."""
    printed_by: str = ""
    """The module whose filters print the files; empty: they are modules with their own."""

    def files(self, root: Path) -> Iterator[Path]:
        """Yield the files in order."""
        for file in sorted((root / self.folder).rglob(f"*{self.suffix}")):
            name = file.relative_to(root).as_posix()
            if not any(part in name for part in self.excluded):
                yield file

    def copies(self, file: str) -> tuple[str, ...]:
        """Return the paths of a file in a generated repository."""
        if not self.copied_to:
            return ()
        return (f"{self.copied_to}{file.removeprefix(self.folder)}",)


PROJECT = "blueprints/project/"
GENERATOR = "generator/"

CONFORMANCE = "runtime/src/capsmith_runtime/testing/"
_LIBRARY = "runtime/src/capsmith_runtime"

TESTS = (
    SourceRoot("tests", excluded=("tests/traceability", "/expected/")),
    SourceRoot(f"{PROJECT}tests", suffix=".py.jinja"),
    SourceRoot(CONFORMANCE.rstrip("/")),
)
"""Tests that may state what they prove."""

MODULES = (
    SourceRoot(f"{GENERATOR}capsmith/provider"),
    SourceRoot(f"{GENERATOR}capsmith/provider_yaml"),
    SourceRoot(f"{GENERATOR}capsmith/blueprint"),
    SourceRoot(
        _LIBRARY, "permissions.yaml", printed_by=f"{GENERATOR}capsmith/output/rbac/__init__.py"
    ),
    SourceRoot(_LIBRARY, excluded=("/testing/",), copied_to="vendor/capsmith_runtime"),
)
"""Modules that carry the rules they name: those that decide what is generated, and the library."""

PERMISSIONS = SourceRoot(_LIBRARY, suffix="permissions.yaml")
"""Declared permissions, which roles are made of."""
