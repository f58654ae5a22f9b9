"""Conformance of the migration of stored objects."""

from capsmith_runtime.testing.conformance.migration.storage_versions import (
    TestStorageVersionMigration,
)

__all__ = [
    "TestStorageVersionMigration",
]
