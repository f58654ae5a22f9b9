"""Migrate stored objects and managed fields to the versions of a CRD (CRD-16).

A version may be removed from a CRD when ``status.storedVersions`` does not name it.  Therefore the
status is updated only after all objects have been rewritten.
"""

from __future__ import annotations

from typing import Final

from capsmith_runtime.kube.client import KubeClient, NamespacedName, NotFound
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.migration import options as migration_flags
from capsmith_runtime.migration.definitions import CRD, Definition, read_definition
from capsmith_runtime.migration.objects import ManagedFieldsCleaner, StorageVersionRewriter
from capsmith_runtime.migration.walk import Walk, WriteLimiter

_log = get_logger("migration")

State = tuple[str, int]
SETTLE_SECONDS: Final = 5.0
"""From a change of the CRD until all API servers write in its storage version."""


class CRDMigrator:
    """Reconciles CRDs; keeps its progress, so that a retry continues."""

    def __init__(
        self, client: KubeClient, metrics: Metrics, options: migration_flags.MigrationOptions
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._options = options
        self._limiter = WriteLimiter()
        self._seen: dict[str, tuple[State, float]] = {}
        """By CRD: the latest state, and when it was first read."""
        self._walks: dict[tuple[str, type], tuple[State, Walk]] = {}
        """By CRD and phase: the state for which it runs, and its progress."""
        self._cleaned: dict[str, State] = {}
        """By CRD: the state for which all managed fields have been checked."""

    async def reconcile(self, key: NamespacedName) -> Result:
        """Migrate the objects of one CRD; raise ApiError if some objects remain."""
        try:
            crd = read_definition(await self._client.get(CRD, key))
        except NotFound:
            _log.warning("no such CRD: nothing to migrate", crd=key.name)
            return Result()
        if crd is None:
            return Result()
        if self._options.migrates_storage_version and not crd.is_migrated:
            wait = self._settle_seconds(crd)
            return Result(wait) if wait > 0 else await self._migrate_storage_version(crd)
        if self._options.cleans_managed_fields and self._cleaned.get(crd.name) != crd.state:
            await self._clean_managed_fields(crd)
        return Result()

    def _settle_seconds(self, crd: Definition) -> float:
        """Return the seconds until objects may be rewritten."""
        state, since = self._seen.get(crd.name, (None, 0.0))
        if state != crd.state:
            since = monotonic()
            self._seen[crd.name] = (crd.state, since)
        return since + SETTLE_SECONDS - monotonic()

    async def _migrate_storage_version(self, crd: Definition) -> Result:
        log = _log.bind(kind=crd.resource.kind, version=crd.storage)
        log.info("rewriting stored objects", stored=",".join(crd.stored))
        rewriter = StorageVersionRewriter(self._client, crd, self._limiter, self._metrics)
        walk = self._walk(crd, rewriter)
        await walk.run(crd.resource)
        current = read_definition(await self._client.get(CRD, NamespacedName("", crd.name)))
        if current is None or current.state != crd.state:
            log.info("the CRD has changed: starting again")
            return Result(0.0)
        status = {"status": {"storedVersions": [crd.storage]}}
        await self._client.patch_status(
            CRD, NamespacedName("", crd.name), status, resource_version=current.resource_version
        )
        log.info("all stored objects are rewritten", objects=walk.processed)
        del self._walks[crd.name, StorageVersionRewriter]
        return Result(0.0)

    async def _clean_managed_fields(self, crd: Definition) -> None:
        walk = self._walk(crd, ManagedFieldsCleaner(self._client, crd, self._limiter))
        await walk.run(crd.resource)
        del self._walks[crd.name, ManagedFieldsCleaner]
        self._cleaned[crd.name] = crd.state
        _log.info(
            "managed fields are all of served versions",
            kind=crd.resource.kind,
            objects=walk.processed,
        )

    def _walk(
        self, crd: Definition, process: StorageVersionRewriter | ManagedFieldsCleaner
    ) -> Walk:
        """Return the walk that was begun for this state of the CRD, or a new one."""
        key = (crd.name, type(process))
        state, walk = self._walks.get(key, (None, None))
        if walk is None or state != crd.state:
            walk = Walk(self._client, process)
            self._walks[key] = (crd.state, walk)
        return walk
