"""The flag that skips migration phases; it has the same name as in core (CRD-16)."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from capsmith_runtime.options import Options

STORAGE_VERSION_MIGRATION: Final = "StorageVersionMigration"
CLEANUP_MANAGED_FIELDS: Final = "CleanupManagedFields"
PHASES: Final = (STORAGE_VERSION_MIGRATION, CLEANUP_MANAGED_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationOptions:
    """Which phases of a storage version migration run when a CRD's versions change."""

    migrates_storage_version: bool = True
    """Whether to rewrite objects in the storage version."""
    cleans_managed_fields: bool = True
    """Whether to remove ``managedFields`` entries for versions that are no longer served."""

    @property
    def any_phase(self) -> bool:
        """Return whether at least one phase is enabled."""
        return self.migrates_storage_version or self.cleans_managed_fields


class MigrationFlags:
    """Defines the command-line flag that skips phases of the migration of stored objects."""

    name = "migration"

    def add(self, parser: argparse.ArgumentParser) -> None:
        """Add the flag to the parser."""
        parser.add_argument(
            "--skip-crd-migration-phases",
            action="append",
            default=[],
            type=_phases,
            metavar="PHASE,...",
            help=f"phases of the migration of stored objects to leave out: {', '.join(PHASES)}",
        )

    def read(self, arguments: argparse.Namespace) -> MigrationOptions:
        """Return the migration options from the parsed arguments."""
        skipped = {phase for phases in arguments.skip_crd_migration_phases for phase in phases}
        return MigrationOptions(
            migrates_storage_version=STORAGE_VERSION_MIGRATION not in skipped,
            cleans_managed_fields=CLEANUP_MANAGED_FIELDS not in skipped,
        )


MIGRATION: Final = MigrationFlags()


def migration_options(options: Options) -> MigrationOptions:
    """Return a manager's migration options; by default all phases run."""
    migration = options.extra.get(MIGRATION.name)
    return migration if isinstance(migration, MigrationOptions) else MigrationOptions()


def _phases(text: str) -> list[str]:
    phases = [phase.strip() for phase in text.split(",") if phase.strip()]
    for phase in phases:
        if phase not in PHASES:
            raise ValueError(f"neither {' nor '.join(PHASES)}: {phase!r}")
    return phases
