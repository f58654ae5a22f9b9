"""Controller that migrates stored objects; it runs only on the leader (CRD-16)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from capsmith_runtime.errors import ApiError, ForbiddenError
from capsmith_runtime.kube.client import KubeClient, NamespacedName, Selection
from capsmith_runtime.kube.clock import Backoff
from capsmith_runtime.kube.controller import Controller
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.migration.migrator import CRD, CRDMigrator
from capsmith_runtime.migration.options import MigrationOptions, migration_options
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Runnable

_log = get_logger("migration")

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
