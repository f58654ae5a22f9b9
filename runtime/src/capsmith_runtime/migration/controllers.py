"""Controller that migrates stored objects to a CRD's storage version, only on the leader (CRD-16).

It rewrites the objects, and drops managed fields of versions that are no longer served.  A version
may be removed from a CRD once ``status.storedVersions`` no longer names it.  The status is updated
only after all objects have been rewritten.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ResourceExpiredError,
)
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    ResourceType,
    Selection,
    key_of,
)
from capsmith_runtime.kube.clock import Backoff, monotonic
from capsmith_runtime.kube.controller import Controller, Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.migration import options as migration_flags
from capsmith_runtime.migration.options import MigrationOptions, migration_options
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Runnable

CRD: Final = ResourceType(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The parts of a CRD that a migration needs, as read from the API server."""

    name: str
    resource_version: str
    state: tuple[str, int]
    """The CRD's UID and generation, one of which changes whenever the versions do."""
    storage: str
    """The storage version."""
    stored: tuple[str, ...]
    """The versions in which objects may still be stored."""
    served: frozenset[str]
    """API versions that are served, in the form ``group/version``."""
    resource: ResourceType
    """The kind in its storage version if that is served, otherwise in another served version."""
    has_status: bool
    """Whether the status is a subresource in that version."""

    @property
    def is_migrated(self) -> bool:
        """Return whether ``storedVersions`` contains no version except the storage version."""
        return self.stored == (self.storage,)

    @property
    def storage_api_version(self) -> str:
        """Return the storage version in the form ``group/version``."""
        return f"{self.resource.group}/{self.storage}"


def read_definition(crd: JSON) -> Definition | None:
    """Return a CRD's definition, or None if the CRD serves no version, so no object can be read."""
    versions = metadata.items(crd, "spec", "versions")
    storage = next((metadata.text(each, "name") for each in versions if each.get("storage")), "")
    served = [each for each in versions if each.get("served")]
    if not served or not storage:
        return None
    # The storage version if it is served: requests for another version would be converted.
    version = min(served, key=lambda each: not each.get("storage"))
    group = metadata.text(crd, "spec", "group")
    return Definition(
        name=metadata.name(crd),
        resource_version=metadata.text(crd, "metadata", "resourceVersion"),
        state=(metadata.uid(crd), metadata.generation(crd)),
        storage=storage,
        stored=tuple(metadata.items(crd, "status", "storedVersions")),
        served=frozenset(f"{group}/{metadata.text(each, 'name')}" for each in served),
        resource=_resource(crd, version),
        has_status=metadata.lookup(version, "subresources", "status") is not None,
    )


def _resource(crd: JSON, version: Mapping[str, Any]) -> ResourceType:
    return ResourceType(
        metadata.text(crd, "spec", "group"),
        metadata.text(version, "name"),
        metadata.text(crd, "spec", "names", "kind"),
        metadata.text(crd, "spec", "names", "plural"),
        namespaced=metadata.text(crd, "spec", "scope") == "Namespaced",
    )


_log = get_logger("migration")

PAGE_SIZE: Final = 250
MAX_CONCURRENT_WRITES: Final = 4
PAUSE_SECONDS: Final = 0.08
"""Seconds for which a write slot stays occupied after its write.

The pause gives controllers time to handle the event that each write causes.
"""
MAX_FAILURES: Final = 20
"""Number of failures that end a walk, because so many probably have a common cause."""

ProcessObject = Callable[[JSON], Awaitable[None]]
"""Function that processes an object, given only its metadata; may raise ApiError."""


class WriteLimiter:
    """Limits the writes for all kinds together, to leave API server capacity to controllers."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_WRITES)

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None, None]:
        """Return an asynchronous context manager that waits for a write slot and holds it.

        The slot is released after the block and a subsequent pause.
        """
        async with self._slots:
            yield
            await asyncio.sleep(PAUSE_SECONDS)


class Walk:
    """Processes each object of a kind once; a retry skips objects that were already processed."""

    def __init__(self, client: KubeClient, process: ProcessObject) -> None:
        self._client = client
        self._process = process
        self._processed: set[str] = set()
        self._failures: list[ApiError] = []

    @property
    def processed(self) -> int:
        """Return the number of processed objects."""
        return len(self._processed)

    async def run(self, resource: ResourceType) -> None:
        """Process all pages of the kind's list.

        Raises ApiError immediately if a list fails. Otherwise raises the first error that occurred
        for an object, once the walk is complete.
        """
        self._failures, token, before = [], "", self.processed
        while True:
            try:
                page = await self._client.list_page(
                    resource, Selection(metadata_only=True), limit=PAGE_SIZE, token=token
                )
            except ResourceExpiredError:
                # Without progress since the last list, the token of the next one would expire as
                # well.
                if not token or self.processed == before:
                    raise
                # The continue token has expired: list again, and skip what has been processed.
                token, before = "", self.processed
                continue
            async with asyncio.TaskGroup() as group:
                for obj in page.items:
                    group.create_task(self._process_once(resource.kind, obj))
            if not page.token or self._is_stopped:
                break
            token = page.token
            _log.info("a page is done", kind=resource.kind, objects=self.processed)
        if self._failures:
            raise self._failures[0]

    @property
    def _is_stopped(self) -> bool:
        # A server that sends Retry-After is overloaded.
        too_many = len(self._failures) >= MAX_FAILURES
        return too_many or any(error.retry_after for error in self._failures)

    async def _process_once(self, kind: str, obj: JSON) -> None:
        if metadata.uid(obj) in self._processed or self._is_stopped:
            return
        try:
            await self._process(obj)
        except ApiError as error:
            if not self._failures:
                _log.warning("object is left", kind=kind, object=str(key_of(obj)), error=str(error))
            self._failures.append(error)
        else:
            self._processed.add(metadata.uid(obj))


class StorageVersionRewriter:
    """Makes the API server rewrite stored objects, now encoded in the storage version."""

    def __init__(
        self, client: KubeClient, crd: Definition, limiter: WriteLimiter, metrics: Metrics
    ) -> None:
        # Webhooks and policies are rarely called for the status, so they cannot reject the write.
        self._patch = client.patch_status if crd.has_status else client.patch
        self._resource = crd.resource
        self._limiter = limiter
        self._rewritten = metrics.objects_rewritten.labels(crd.resource.kind)

    async def __call__(self, obj: JSON) -> None:
        """Send an empty patch: the API server writes only objects stored in another version."""
        async with self._limiter.slot():
            try:
                await self._patch(self._resource, key_of(obj), {})
            except (NotFoundError, ConflictError):
                return  # deleted, or just written by another client and thus in the storage version
        self._rewritten.inc()


class ManagedFieldsCleaner:
    """Removes ``managedFields`` entries for versions that are no longer served."""

    def __init__(self, client: KubeClient, crd: Definition, limiter: WriteLimiter) -> None:
        self._client = client
        self._crd = crd
        self._limiter = limiter

    async def __call__(self, obj: JSON) -> None:
        """Replace the managed fields of an object.

        Raises ConflictError if the object was changed after it was read, and must be read again.
        """
        entries = filter_served_entries(obj, self._crd.served, self._crd.storage_api_version)
        if entries is None:
            return
        body = {"metadata": {"managedFields": entries}}
        # managedFields is a list, which a merge patch replaces as a whole.
        version = metadata.text(obj, "metadata", "resourceVersion")
        async with self._limiter.slot():
            try:
                await self._client.patch(
                    self._crd.resource, key_of(obj), body, resource_version=version
                )
            except NotFoundError:
                return


# The API server converts the fields of each entry of managedFields to the version of a request,
# and returns an error if the CRD no longer has the version of the entry.
def filter_served_entries(
    obj: JSON, served: Collection[str], api_version: str
) -> list[JSON] | None:
    """Return the ``managedFields`` entries whose version is still served, or None if all are.

    If no version is still served, returns a placeholder entry with version ``api_version``, because
    the list must not be empty. ``served`` holds versions as ``group/version``.
    """
    entries = metadata.items(obj, "metadata", "managedFields")
    kept = [entry for entry in entries if entry.get("apiVersion") in served]
    if len(kept) == len(entries):
        return None
    return kept or [_seed(entries[0], api_version)]


def _seed(removed: JSON, api_version: str) -> JSON:
    """Return an entry that owns only the name.

    Without any entry, the API server would create an entry for the manager "before-first-apply"
    that owns all fields.  They would then have two owners, and remain when the next applier drops
    them.
    """
    return {
        **{key: removed[key] for key in ("manager", "operation", "time") if key in removed},
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:name": {}}},
    }


State = tuple[str, int]
SETTLE_SECONDS: Final = 5.0
"""Seconds after a change to a CRD until all API servers write the new storage version."""


class CRDMigrator:
    """Migrates the objects of CRDs; a retry resumes where the last attempt stopped."""

    def __init__(
        self, client: KubeClient, metrics: Metrics, options: migration_flags.MigrationOptions
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._options = options
        self._limiter = WriteLimiter()
        self._seen: dict[str, tuple[State, float]] = {}
        """For each CRD, the latest state and the time when it was first read."""
        self._walks: dict[tuple[str, type], tuple[State, Walk]] = {}
        """For each CRD and phase, the state that the walk runs for, and the walk."""
        self._cleaned: dict[str, State] = {}
        """For each CRD, the state for which all managed fields have been checked."""

    async def reconcile(self, key: NamespacedName) -> Result:
        """Migrate a CRD's objects, or return the delay before they can be migrated.

        Raises ApiError if some objects could not be migrated.
        """
        try:
            crd = read_definition(await self._client.get(CRD, key))
        except NotFoundError:
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
        # The versions may have changed during the walk, so that earlier objects are in the wrong
        # one.
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
        """Return the walk that was started for this state of the CRD, or a new one."""
        key = (crd.name, type(process))
        state, walk = self._walks.get(key, (None, None))
        if walk is None or state != crd.state:
            walk = Walk(self._client, process)
            self._walks[key] = (crd.state, walk)
        return walk


_NAME: Final = "StorageMigration"
RETRY_SECONDS: Final = (1.0, 300.0)


class StorageVersionMigration:
    """Factory for the controller that migrates the stored objects of the named CRDs."""

    def __init__(self, *crds: str) -> None:
        self.crds = crds

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the controller for one manager."""
        options = migration_options(context.options)
        selection = Selection(
            labels=f"cluster.x-k8s.io/provider={context.label}", metadata_only=True
        )
        return StorageVersionMigrationGroup(
            self.crds, selection, caches.client, caches.metrics, options
        )


class StorageVersionMigrationGroup(ControllerGroup):
    """Reconciles each CRD once at startup and whenever it changes; there is no resync."""

    def __init__(
        self,
        crds: Sequence[str],
        selection: Selection,
        client: KubeClient,
        metrics: Metrics,
        options: MigrationOptions,
    ) -> None:
        self._keys = tuple(NamespacedName("", crd) for crd in crds)
        self._selection = selection
        self._client = client
        self._options = options
        first, longest = RETRY_SECONDS
        queue = WorkQueue[NamespacedName](_NAME, metrics, base_delay=first, max_delay=longest)
        migrator = CRDMigrator(client, metrics, options)
        # One CRD at a time leaves the API server to the controllers of the provider.
        self._controller = Controller(_NAME, queue, migrator.reconcile, metrics, concurrency=1)
        self._informer = Informer(client, CRD, metrics, selection=selection)
        self._informer.add_handler(self._enqueue)

    @property
    def leader_runnables(self) -> Sequence[Runnable]:
        """Return the controller, unless the options skip all phases."""
        return (self._run,) if self._options.any_phase else ()

    async def _run(self) -> None:
        await self._wait_for_permission()
        for key in self._keys:
            self._controller.queue.add(key)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            group.create_task(self._controller.run())

    def _enqueue(self, delta: Delta) -> None:
        if delta.key in self._keys:
            self._controller.queue.add(delta.key)

    async def _wait_for_permission(self) -> None:
        """Wait until CRDs can be listed; log only the first failure, not each attempt."""
        backoff, logged = Backoff(*RETRY_SECONDS), False
        while True:
            try:
                await self._client.list_page(CRD, self._selection, limit=1)
            except ApiError as error:
                if not logged:
                    denied = isinstance(error, ForbiddenError)
                    reason = "the role of the manager is older" if denied else "it is tried again"
                    _log.warning("stored objects cannot be migrated", error=str(error), why=reason)
                logged = True
                await asyncio.sleep(backoff.next(error.retry_after))
            else:
                return
