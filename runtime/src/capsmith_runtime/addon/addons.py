"""Controller for one kind of add-on: finds selected Clusters, and writes the status (AD-03)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any, Final, NamedTuple

from capsmith_runtime.addon.api import AddonReconciler
from capsmith_runtime.addon.installations import (
    PENDING,
    REASON_CLUSTER_MISSING,
    REASON_PENDING,
    REASON_REMOVING,
    Installation,
    InstallationStatus,
    InstallationStatuses,
    describe_not_ready,
    fit_entries,
    format_clusters,
    record_annotation,
    recorded_clusters,
)
from capsmith_runtime.addon.selections import select_clusters
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import is_deleted_for_move
from capsmith_runtime.contract.records import Record
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import Patcher, paused, ready
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.status_reporter import StatusReporter

AddonKind = Kind[AddonReconciler[Any]]

_MAX_MISSING: Final = 100
"""Maximum number of clusters of an add-on to look up at a time because no cache has them."""


class _RequestedVersion(NamedTuple):
    """The version of an add-on for which an installation was last requeued."""

    uid: str
    generation: int
    selected: bool


class AddonController:
    """Reconciles one kind of add-on, but not its installations on clusters.

    This controller records an add-on's clusters, and InstallationController reads that record.
    InstallationController in turn stores its results in ``statuses``, from which this controller
    writes the add-on's status.
    """

    def __init__(
        self,
        kind: AddonKind,
        reconciler: AddonReconciler[Any],
        informer: Informer,
        caches: Caches,
        context: ControllerContext,
        statuses: InstallationStatuses,
    ) -> None:
        self.kind = kind
        self._caches = caches
        self._statuses = statuses
        self._requested: dict[NamespacedName, dict[str, _RequestedVersion]] = {}
        self._running: set[NamespacedName] = set()
        self.requeue_installation: Callable[[Installation], None] = lambda installation: None
        """Function that requeues an installation; set when the watches are set up."""
        self.build_record: Callable[[JSON], Mapping[Record, str]] = lambda obj: {}
        """Function that returns the records of the identity that an add-on names."""
        self._reporter = StatusReporter(kind, context)
        self._author = AuthorStep(kind, context, self._reporter, reconciler)
        self._runner = ReconcileRunner(
            kind,
            informer,
            context,
            self._reporter,
            new_patcher=partial(Patcher, context.client, informer, context.writer),
            forget=self._forget,
        )

    def forget_request(self, installation: Installation) -> None:
        """Requeue an installation at the add-on's next reconcile, because a pause has stopped it.

        That reconcile may be the first after the pause, which then is seen only by installations.
        """
        self._requested.get(installation.addon, {}).pop(installation.cluster, None)

    def has_selected(self, key: NamespacedName, cluster: str, selected: bool) -> bool:
        """Return whether an add-on's last reconcile found a cluster as ``selected`` as it is now.

        Then a change of the cluster concerns its installation only. A reconcile takes time in
        proportion to the number of clusters, each of which may change often.
        """
        requested = self._requested.get(key, {}).get(cluster)
        # A running reconcile may have read the cluster before its change.
        if requested is None or key in self._running:
            return False
        return requested.selected == selected

    async def reconcile(self, key: NamespacedName) -> Result:
        """Update an add-on's record of clusters and its status."""
        self._running.add(key)
        try:
            return await self._runner.run(key, self._reconcile)
        finally:
            self._running.discard(key)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        if is_deleted_for_move(patcher.obj):
            return Result()
        deleting = metadata.is_deleting(patcher.obj)
        if deleting and self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        if await self._reporter.ensure_paused_condition(patcher, None):
            # After the pause, each installation is requeued, because changes were ignored in the
            # meantime.
            self._requested.pop(key, None)
            return Result()
        # Read it before add_finalizer writes the external id, whose absence marks a copied object.
        before = recorded_clusters(patcher.obj, self.kind.resource.group)
        if not deleting:
            await patcher.add_finalizer(self.kind, further=self.build_record(patcher.obj))
            if await self._author.decode_spec(patcher) is None:
                return Result()
        clusters = self._caches.clusters
        selected = set() if deleting else set(await select_clusters(patcher.obj, clusters))
        recorded = await self._record_clusters(key, patcher, before, selected)
        if deleting and not recorded:
            await self._reporter.remove_finalizer(patcher)
            return self._forget(key)
        handled = self._select_handled(key, recorded, selected)
        self._requeue_changed(key, patcher.obj, handled, selected)
        await self._write_status(key, patcher, handled, selected)
        return Result()

    async def _record_clusters(
        self, key: NamespacedName, patcher: Patcher, before: Set[str], selected: set[str]
    ) -> set[str]:
        """Record clusters before an installation; drop them once everything is removed."""
        group, statuses = self.kind.resource.group, self._statuses.of_addon(key)
        name = record_annotation(group)
        removed = {
            cluster for cluster in before - selected if statuses.get(cluster, PENDING).removed
        }
        recorded = (before | selected) - removed
        value = format_clusters(recorded)
        if value != metadata.annotations(patcher.obj).get(name, ""):
            await patcher.annotate(name, value)
        for cluster in removed:
            self._statuses.drop(Installation(key, cluster))
            self._requested.get(key, {}).pop(cluster, None)
        return set(recorded)

    def _select_handled(
        self, key: NamespacedName, recorded: set[str], selected: set[str]
    ) -> set[str]:
        """Return the recorded clusters that are handled now: few of those that seem not to exist.

        Users can write thousands of names into the record, each of which takes requests.
        """
        cached = {cluster.name for cluster in self._caches.clusters.keys_in(key.namespace)}
        statuses = self._statuses.of_addon(key)
        missing = {
            cluster
            for cluster in recorded - selected - cached
            if statuses.get(cluster, PENDING).reason in (REASON_PENDING, REASON_CLUSTER_MISSING)
        }
        return recorded - missing | set(heapq.nsmallest(_MAX_MISSING, missing))

    def _requeue_changed(
        self, key: NamespacedName, obj: JSON, handled: set[str], selected: set[str]
    ) -> None:
        requested = self._requested.setdefault(key, {})
        for cluster in sorted(handled):
            version = _RequestedVersion(
                metadata.uid(obj), metadata.generation(obj), cluster in selected
            )
            # Every write of the status would otherwise requeue all installations, each with
            # requests to its cluster.
            if requested.get(cluster) != version:
                requested[cluster] = version
                self.requeue_installation(Installation(key, cluster))

    async def _write_status(
        self, key: NamespacedName, patcher: Patcher, handled: set[str], selected: set[str]
    ) -> None:
        statuses = self._statuses.of_addon(key)
        entries = [
            _shown_status(statuses.get(cluster, PENDING), cluster in selected).entry(cluster)
            for cluster in sorted(handled)
        ]
        status = {
            **metadata.mapping(patcher.obj, "status"),
            "clusters": len(selected),
            "readyClusters": sum(entry["ready"] for entry in entries),
            "matchingClusters": fit_entries(entries),
        }
        message = describe_not_ready(entries)
        reason = constants.REASON_NOT_READY if message else constants.REASON_READY
        await patcher.write_status(status, (ready(not message, reason, message), paused("")))

    def _forget(self, key: NamespacedName) -> Result:
        self._reporter.forget(key)
        self._author.forget(key)
        self._requested.pop(key, None)
        self._statuses.forget(key)
        return Result()


def _shown_status(status: InstallationStatus, selected: bool) -> InstallationStatus:
    """Return the status to show: a ready add-on that is no longer selected is being removed."""
    if selected or not status.ready:
        return status
    return InstallationStatus(False, REASON_REMOVING)
