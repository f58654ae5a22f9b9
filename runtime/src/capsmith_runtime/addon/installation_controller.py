"""Controller that installs an add-on on one cluster, or removes it.

It checks the preconditions and calls the author's reconciler, in the order of AD-03.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from capsmith_runtime.addon.addons import AddonKind
from capsmith_runtime.addon.api import (
    AddonDeleteScope,
    AddonReconciler,
    AddonScope,
    AddonState,
    Workload,
)
from capsmith_runtime.addon.installations import (
    REASON_CLUSTER_DELETING,
    REASON_CLUSTER_MISSING,
    REASON_UNREACHABLE,
    REASON_WAITING_FOR_CONTROL_PLANE,
    REMOVED,
    Installation,
    InstallationStatus,
    InstallationStatuses,
    parse_key,
    recorded_clusters,
)
from capsmith_runtime.addon.selections import is_cluster_selected
from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, is_deleted_for_move, pause_message
from capsmith_runtime.contract.model import Object
from capsmith_runtime.errors import TerminalError
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.requeue import DeferredError, Priority
from capsmith_runtime.reconcile.author_step import AuthorCalls, connect_scope
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.object_credentials import ObjectCredentials
from capsmith_runtime.reconcile.results import (
    Deleted,
    NotAvailableError,
    Waiting,
    describe_unexpected_result,
)
from capsmith_runtime.reconcile.status_reporter import StatusDebounce, describe_failure
from capsmith_runtime.workload.client import ClusterUnreachableError

OpenWorkload = Callable[[str, str], Awaitable[Workload]]
"""Function that returns a workload cluster's client, given the Cluster's namespace and name."""

MISSING_CLUSTER_SECONDS: Final = 60.0
"""Seconds to wait for a missing Cluster: ``clusterctl move`` may create the add-on first."""


class InstallationController:
    """Installs one kind of add-on on workload clusters, and removes it."""

    def __init__(
        self,
        kind: AddonKind,
        reconciler: AddonReconciler[Any],
        informer: Informer,
        caches: Caches,
        context: ControllerContext,
        statuses: InstallationStatuses,
        open_workload: OpenWorkload,
    ) -> None:
        self.kind = kind
        self._reconciler = reconciler
        self._author = AuthorCalls(reconciler, context.sessions)
        self.credentials = ObjectCredentials(kind)
        """Credentials of the add-ons; connected before the manager starts."""
        self._informer = informer
        self._caches = caches
        self._context = context
        self._statuses = statuses
        self._open_workload = open_workload
        self._missing_clusters = StatusDebounce(MISSING_CLUSTER_SECONDS)
        self._deleting_clusters: set[Installation] = set()
        self.requeue_addon: Callable[[NamespacedName], None] = lambda addon: None
        """Function that requeues an add-on to update its status.

        It is set when the watches are set up.
        """
        self.forget_request: Callable[[Installation], None] = lambda installation: None
        """Function that makes the add-on's next reconcile requeue an installation.

        It is set when the watches are set up.
        """

    async def reconcile(self, key: NamespacedName) -> Result:
        """Install, update or remove an add-on on a cluster; ``key`` names both."""
        installation = parse_key(key)
        obj = self._informer.get(installation.addon)
        if obj is None or not self._is_recorded(installation, obj):
            self._forget(installation)
            return Result()
        if pause_message(obj, self.kind.resource.kind, None):
            self.forget_request(installation)
            return Result()
        namespace, name = installation.addon.namespace, installation.cluster
        cluster = self._caches.cluster(namespace, name)
        if cluster is None or not _is_selected(obj, cluster):
            # Before anything is removed, respect a pause that the cache does not have yet (SM-01).
            cluster = await self._caches.live_cluster(namespace, name)
        if cluster is None:
            return self._reconcile_missing(installation, obj)
        self._missing_clusters.forget(key)
        if cluster.deleting:
            self._deleting_clusters.add(installation)
            # The workload cluster disappears with everything on it, so nothing is removed from it
            # first.
            return self._store(installation, InstallationStatus(False, REASON_CLUSTER_DELETING))
        if cluster.paused:
            message = "Cluster spec.paused is set to true"
            status = InstallationStatus(False, constants.REASON_PAUSED, message)
            return self._store(installation, status)
        selected = _is_selected(obj, cluster)
        if not cluster.control_plane_initialized:
            # Nothing was installed before the control plane was initialized, so nothing is left.
            waiting = InstallationStatus(False, REASON_WAITING_FOR_CONTROL_PLANE)
            return self._store(installation, waiting if selected else REMOVED)
        return await self._reconcile_on_cluster(installation, obj, cluster, selected)

    def _is_recorded(self, installation: Installation, obj: JSON) -> bool:
        return (
            not is_deleted_for_move(obj)
            and self.kind.finalizer in metadata.finalizers(obj)
            and installation.cluster in recorded_clusters(obj, self.kind.resource.group)
        )

    def _reconcile_missing(self, installation: Installation, obj: JSON) -> Result:
        left = self._missing_clusters.left(installation.key, REASON_CLUSTER_MISSING)
        # A Cluster whose deletion was observed does not come back; any other may still be created
        # by a move.
        expected = installation not in self._deleting_clusters and not metadata.is_deleting(obj)
        if left > 0 and expected:
            self._store(installation, InstallationStatus(False, REASON_CLUSTER_MISSING))
            return Result(left)
        self._deleting_clusters.discard(installation)
        self._missing_clusters.forget(installation.key)
        self._store(installation, REMOVED)
        return Result()

    async def _reconcile_on_cluster(
        self, installation: Installation, obj: JSON, cluster: Cluster, selected: bool
    ) -> Result:
        try:
            workload = await self._open_workload(cluster.namespace, cluster.name)
            result = await self._call(installation, obj, cluster, workload, selected)
        except NotAvailableError as error:
            result = error.waiting
        # Not a failure: the call is only postponed, so the stored status remains valid.
        except DeferredError:
            raise
        except ClusterUnreachableError as error:
            status = InstallationStatus(False, REASON_UNREACHABLE, error.message)
            self._store(installation, status)
            raise
        except Exception as error:
            reason, message = describe_failure(error)
            self._context.events.warn(obj, reason, message)
            stored = self._store(installation, InstallationStatus(False, reason, message))
            if isinstance(error, TerminalError):
                return stored
            raise
        if isinstance(result, Deleted):
            return self._store(installation, REMOVED)
        return self._store(installation, _status_of(result), result.requeue_after)

    async def _call(
        self,
        installation: Installation,
        obj: JSON,
        cluster: Cluster,
        workload: Workload,
        selected: bool,
    ) -> AddonState | Waiting | Deleted:
        """Call the reconciler and check the type of its result."""
        common = self._scope_fields(installation, obj)
        spec, credentials = self._decoded_spec(obj), await self.credentials.read(obj)
        scope: AddonScope[Any] | AddonDeleteScope[Any]
        if not selected:
            scope = AddonDeleteScope(_spec=spec, _credentials=credentials, **common)
            handler: Callable[..., Any] = self._reconciler.reconcile_delete
            expected: type[AddonState] | type[Deleted] = Deleted
        elif isinstance(spec, DecodingError):
            return Waiting(constants.REASON_INVALID_SPEC, str(spec), requeue_after=None)
        elif isinstance(credentials, Waiting):
            return credentials
        else:
            scope = AddonScope(spec=spec, credentials=credentials, **common)
            handler = self._reconciler.reconcile_normal
            expected = AddonState
        with connect_scope(scope, self._context, obj):
            arguments, owner = (scope, cluster, workload), installation.owner
            result = await self._author.call(
                installation, handler, *arguments, deletion=not selected, owner=owner
            )
        if not isinstance(result, (expected, Waiting)):
            raise TypeError(describe_unexpected_result(handler, result, expected, Waiting))
        return result

    def _scope_fields(self, installation: Installation, obj: JSON) -> dict[str, Any]:
        """Return the attributes that both scopes have."""
        return {
            "name": installation.addon.name,
            "namespace": installation.addon.namespace,
            "external_id": self.kind.external_id(obj),
            "_status": metadata.mapping(obj, "status"),
            "logger": get_logger(
                "author",
                kind=self.kind.resource.kind,
                object=str(installation.addon),
                cluster=installation.cluster,
            ),
        }

    def _decoded_spec(self, obj: Object) -> Any:
        try:
            return decode(self.kind.spec, metadata.mapping(obj, "spec"), "spec")
        except DecodingError as error:
            return error

    def _store(
        self,
        installation: Installation,
        status: InstallationStatus,
        requeue_after: float | None = None,
    ) -> Result:
        if self._statuses.put(installation, status):
            self.requeue_addon(installation.addon)
        if requeue_after is None and self._context.sync_seconds > 0 and not status.removed:
            # No watch reports changes in the workload cluster, so it is checked periodically.
            resync = self._context.sync_seconds * random.uniform(0.9, 1.1)
            return Result(resync, Priority.LOW)
        return Result(requeue_after)

    def _forget(self, installation: Installation) -> None:
        self._author.forget(installation)
        self._statuses.drop(installation)
        self._missing_clusters.forget(installation.key)
        self._deleting_clusters.discard(installation)


def _is_selected(obj: Object, cluster: Cluster) -> bool:
    return not metadata.is_deleting(obj) and is_cluster_selected(obj, cluster)


def _status_of(result: AddonState | Waiting) -> InstallationStatus:
    if isinstance(result, Waiting):
        return InstallationStatus(False, result.reason, result.message)
    default = constants.REASON_READY if result.ready else constants.REASON_NOT_READY
    return InstallationStatus(result.ready, result.reason or default, result.message)
