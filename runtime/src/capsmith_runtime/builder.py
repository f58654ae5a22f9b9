"""Builds a manager's caches and controllers from a component."""

from __future__ import annotations

import socket

from capsmith_runtime.component import Component
from capsmith_runtime.contract.core import CoreReader
from capsmith_runtime.contract.versions import STATUS_WRITERS
from capsmith_runtime.kube.client import KubeClient, NamespacedName
from capsmith_runtime.kube.controller import Controller
from capsmith_runtime.kube.events import EventRecorder
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.workqueue import WorkQueue
from capsmith_runtime.options import Options
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import Reconcile
from capsmith_runtime.reconcile.permissions import Permissions
from capsmith_runtime.reconcile.session_pools import SessionPools
from capsmith_runtime.reconcile.session_tasks import ReadinessCheck
from capsmith_runtime.reconcile.watched_kinds import WatchedKinds

_log = get_logger("manager")


class ManagerBuilder:
    """Creates the caches and a controller for each kind, without starting them."""

    def __init__(
        self,
        component: Component,
        options: Options,
        client: KubeClient,
        metrics: Metrics,
        reader: CoreReader,
        scope: WatchScope,
    ) -> None:
        self.caches = Caches(client, metrics, reader, scope)
        self.events = EventRecorder(client, component.label, socket.gethostname(), metrics)
        self._component, self._metrics, self._options = component, metrics, options
        self.executor = HandlerExecutor(
            metrics, threads=options.hook_threads, timeout=options.hook_timeout
        )
        self.sessions = self._sessions()
        context = self._context()
        self.groups = [make(self.caches, context) for make in component.groups]
        further = WatchedKinds(
            component.watches,
            client,
            metrics,
            scope=scope,
            own=[informer for group in self.groups for informer in group.informers],
        )
        self.groups.append(further)
        for group in self.groups:
            group.connect(self.groups)
        self.controllers = [
            self._controller(kind, reconcile)
            for group in self.groups
            for kind, reconcile in group.reconcilers()
        ]
        self._warn_of_unknown_kinds()
        queues = {controller.name: controller.queue for controller in self.controllers}
        for group in self.groups:
            group.setup_watches(queues)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return the informers for all caches; the manager must run every one of them."""
        own = (informer for group in self.groups for informer in group.informers)
        return (
            *((self.caches.clusters,) if self._component.watches_clusters else ()),
            *((self.caches.machines,) if self._component.watches_machines else ()),
            *own,
        )

    @property
    def readiness_checks(self) -> tuple[ReadinessCheck, ...]:
        """Return the author's readiness checks; the manager must run every one of them."""
        own = (check for group in self.groups for check in group.readiness_checks)
        return (*self.sessions.checks, *own)

    def _sessions(self) -> SessionPools:
        options = self._options
        return SessionPools(
            self.executor,
            rate=options.hook_rate,
            burst=options.hook_burst,
            concurrency=options.concurrency,
        )

    def _context(self) -> ControllerContext:
        return ControllerContext(
            client=self.caches.client,
            label=self._component.label,
            contract=self._component.contract,
            executor=self.executor,
            sessions=self.sessions,
            events=self.events,
            writer=STATUS_WRITERS[self._component.contract],
            sync_seconds=self._options.sync_period,
            debounce_seconds=self._options.status_debounce,
            options=self._options,
            permissions=Permissions(
                self._component.permissions, [watch.resource for watch in self._component.watches]
            ),
        )

    def _controller(self, kind: str, reconcile: Reconcile) -> Controller[NamespacedName]:
        queue = WorkQueue[NamespacedName](kind, self._metrics)
        concurrency = self._options.concurrency_of(kind)
        return Controller(kind, queue, reconcile, self._metrics, concurrency=concurrency)

    def _warn_of_unknown_kinds(self) -> None:
        # Not an error: clusterctl passes the same variable to all components of a repository.
        kinds = {controller.name for controller in self.controllers}
        unknown = sorted(self._options.kind_concurrency.keys() - kinds)
        if unknown:
            _log.warning("--concurrency names unknown kinds", unknown=unknown, kinds=sorted(kinds))
