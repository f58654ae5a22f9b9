"""An add-on provider's controllers and their watches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from capsmith_runtime.addon.addons import AddonController, AddonKind
from capsmith_runtime.addon.api import Workload
from capsmith_runtime.addon.installation_controller import InstallationController, OpenWorkload
from capsmith_runtime.addon.installations import (
    Installation,
    InstallationStatuses,
    recorded_clusters,
)
from capsmith_runtime.addon.selections import AddonSelections
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of, version_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile, Runnable
from capsmith_runtime.reconcile.kinds import SECRET
from capsmith_runtime.reconcile.watches import on_change
from capsmith_runtime.workload.client import WorkloadClients, check_kubeconfig
from capsmith_runtime.workload.kubeconfig import secret_name

STATUS_SECONDS = 0.2
"""Seconds for which changes are collected before an add-on's status is written."""


class AddonControllers:
    """Creates the controllers for a provider's add-on kinds."""

    def __init__(self, kinds: Sequence[AddonKind]) -> None:
        self.kinds = kinds

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the controllers for one manager."""
        return AddonGroup(self.kinds, caches, context)


class AddonGroup(ControllerGroup):
    """The controllers of all add-on kinds, which share the workload cluster clients."""

    def __init__(
        self, kinds: Sequence[AddonKind], caches: Caches, context: ControllerContext
    ) -> None:
        self._caches = caches
        self._clients = WorkloadClients(context.client, caches.metrics, field_manager=context.label)
        # Core labels all Secrets of a cluster, so their data would include keys: only the versions
        # are needed.
        selection = caches.scope.select(labels=constants.CLUSTER_NAME_LABEL, metadata_only=True)
        self._secrets = Informer(
            caches.client, SECRET, caches.metrics, selection=selection, projection=_identity
        )
        self._kinds = [
            _KindControllers(kind, caches, context, self._open_workload) for kind in kinds
        ]

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the informers for all kinds, and for kubeconfig Secrets (metadata only)."""
        return (self._secrets, *(kind.informer for kind in self._kinds))

    @property
    def runnables(self) -> Sequence[Runnable]:
        """Return the task that closes idle workload cluster connections."""
        return (self._clients.run,)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield two reconcilers for each kind: one for add-ons and one for their installations."""
        for kind in self._kinds:
            yield from kind.reconcilers()

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Connect the kinds that use identities to the group that serves credentials."""
        for kind in self._kinds:
            kind.connect(groups)

    def setup_watches(self, queues: Queues) -> None:
        """Register the handlers for add-ons, Clusters and kubeconfigs."""
        for kind in self._kinds:
            kind.setup_watches(queues)
        self._caches.clusters.add_handler(
            on_change(self._caches.reader.read_cluster, self._on_cluster)
        )
        self._secrets.add_handler(on_change(version_of, self._on_secret))

    def _on_cluster(self, obj: JSON) -> None:
        for kind in self._kinds:
            kind.on_cluster(obj)

    def _on_secret(self, obj: JSON) -> None:
        namespace = metadata.namespace(obj)
        cluster = metadata.labels(obj).get(constants.CLUSTER_NAME_LABEL, "")
        # The cluster's other Secrets, such as certificates, have the same label.
        if metadata.name(obj) == secret_name(cluster):
            self._clients.invalidate(namespace, cluster)
            for kind in self._kinds:
                kind.on_kubeconfig(namespace, cluster)

    async def _open_workload(self, namespace: str, cluster: str) -> Workload:
        client = await self._clients.get(namespace, cluster)

        async def kubeconfig() -> bytes:
            key = NamespacedName(namespace, secret_name(cluster))
            return check_kubeconfig(cluster, await self._caches.client.get(SECRET, key))

        return Workload(client, kubeconfig, asyncio.get_running_loop())


class _KindControllers:
    """The cache, controllers and queues of one kind."""

    def __init__(
        self,
        kind: AddonKind,
        caches: Caches,
        context: ControllerContext,
        open_workload: OpenWorkload,
    ) -> None:
        self.informer = caches.informer(kind.resource, caches.scope.select_own())
        self._selections = AddonSelections(self.informer, kind.resource.group)
        statuses = InstallationStatuses()
        self._caches = caches
        self._name = kind.resource.kind
        self._group = kind.resource.group
        reconciler = kind.reconciler()
        self._addons = AddonController(kind, reconciler, self.informer, caches, context, statuses)
        self._installations = InstallationController(
            kind, reconciler, self.informer, caches, context, statuses, open_workload
        )
        self._addons.build_record = self._installations.credentials.build_own_record
        self._queues: Queues = {}

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield the reconcilers for add-ons and for their installations."""
        yield self._name, self._addons.reconcile
        yield self._installation_name, self._installations.reconcile

    def connect(self, groups: Sequence[ControllerGroup]) -> None:
        """Connect add-ons to the group that serves credentials, so that changes requeue them."""
        self._installations.credentials.connect(groups, self.informer, self._on_credentials)

    def _on_credentials(self, addon: JSON) -> None:
        # Others need no credentials, and users can write thousands of names into the record.
        cached = self._caches.clusters.keys_in(metadata.namespace(addon))
        for cluster in recorded_clusters(addon, self._group) & {key.name for key in cached}:
            self._requeue_installation(key_of(addon), cluster)

    def setup_watches(self, queues: Queues) -> None:
        """Register the add-on handler; add-ons and installations requeue each other."""
        addons, pending = queues[self._name], queues[self._installation_name]
        self._queues = queues
        self._addons.requeue_installation = lambda installation: pending.add(installation.key)
        self._installations.forget_request = self._addons.forget_request
        # Results of many clusters arrive together, and share one write of the status.
        self._installations.requeue_addon = lambda key: addons.add_after(key, STATUS_SECONDS)
        self.informer.add_handler(lambda delta: addons.add(delta.key), own_writes=False)

    def on_cluster(self, obj: JSON) -> None:
        """Requeue the add-ons and installations that a changed Cluster concerns."""
        cluster = self._caches.reader.read_cluster(obj)
        for key, selected in self._selections.find_addons(cluster):
            if not self._addons.has_selected(key, cluster.name, selected):
                self._queues[self._name].add(key)
            self._requeue_installation(key, cluster.name)

    def on_kubeconfig(self, namespace: str, cluster: str) -> None:
        """Requeue the installations on a cluster whose kubeconfig has changed."""
        for key in self._selections.find_recorded(namespace, cluster):
            self._requeue_installation(key, cluster)

    def _requeue_installation(self, addon: NamespacedName, cluster: str) -> None:
        self._queues[self._installation_name].add(Installation(addon, cluster).key)

    @property
    def _installation_name(self) -> str:
        return f"{self._name}Installation"


def _identity(secret: JSON) -> JSON:
    """Return the fields that identify a Secret and its version."""
    kept = ("name", "namespace", "uid", "resourceVersion", "labels")
    fields = {key: value for key, value in secret["metadata"].items() if key in kept}
    return {"apiVersion": "v1", "kind": SECRET.kind, "metadata": fields}
