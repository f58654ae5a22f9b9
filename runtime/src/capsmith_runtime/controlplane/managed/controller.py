"""Controller for managed control planes: derives the contract's fields from the author's states.

See CP-01 and CP-25.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.control_plane import AVAILABLE, ControlPlaneFacts
from capsmith_runtime.contract.control_plane_shapes import CONTROL_PLANE_SHAPES
from capsmith_runtime.contract.core import Cluster, is_deleted_for_move, read_endpoint
from capsmith_runtime.contract.kubernetes_version import normalize
from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.contract.status_writer import add_endpoint
from capsmith_runtime.controlplane.managed.api import (
    ClusterCredentials,
    ManagedControlPlaneDeleteScope,
    ManagedControlPlaneReconciler,
    ManagedControlPlaneScope,
    ManagedControlPlaneState,
)
from capsmith_runtime.controlplane.patcher import ManagedControlPlanePatcher
from capsmith_runtime.controlplane.secrets.contents import SecretReport
from capsmith_runtime.controlplane.secrets.store import KubeconfigSecrets, SecretStore
from capsmith_runtime.controlplane.workers import ClusterWorkers
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.caches import Caches, cluster_name_of, owning_cluster
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.held_ids import HeldIds
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.object_credentials import ObjectCredentials
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.status_reporter import StatusReporter
from capsmith_runtime.workload import kubeconfig

_VERSION: Final = "version"
"""Feature of kinds whose objects have ``spec.version``."""
ManagedControlPlaneKind = Kind[ManagedControlPlaneReconciler[Any]]


class ManagedControlPlaneController:
    """Reconciles one managed ControlPlane kind."""

    def __init__(
        self,
        kind: ManagedControlPlaneKind,
        informer: Informer,
        caches: Caches,
        context: ControllerContext,
        store: SecretStore,
        workers: ClusterWorkers,
        held_ids: HeldIds,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.kind = kind
        self._caches = caches
        self._workers = workers
        self._held_ids = held_ids
        self._shape = CONTROL_PLANE_SHAPES[context.contract]
        self._kubeconfigs = KubeconfigSecrets(store)
        self._now = now
        self._reporter = StatusReporter(
            kind,
            context,
            has_failure_fields=lambda _: True,
            is_provisioned=self._shape.is_initialized,
            shown_as=AVAILABLE,
        )
        self.credentials = ObjectCredentials(kind)
        """Credentials of the kind's objects; connected before the manager starts."""
        self._author = AuthorStep(
            kind, context, self._reporter, has_account=self.credentials.is_used
        )
        self._runner = ReconcileRunner(
            kind,
            informer,
            context,
            self._reporter,
            new_patcher=lambda obj: ManagedControlPlanePatcher(
                context.client, informer, context.writer, obj, self._shape, kind.features
            ),
            forget=self._forget,
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile a control plane.

        Failures are reported in its conditions.
        """
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        if is_deleted_for_move(patcher.obj):
            return Result()
        if metadata.is_deleting(patcher.obj):
            return await self._reconcile_delete(key, patcher)
        cluster = self._caches.cluster(key.namespace, owning_cluster(patcher.obj))
        # Without an owner there is nothing to do yet; the owner reference triggers an event.
        if cluster is None:
            return Result()
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        return await self._reconcile_normal(patcher, cluster)

    async def _reconcile_normal(self, patcher: Patcher, cluster: Cluster) -> Result:
        record = self.credentials.build_record(patcher.obj, cluster)
        credentials = await self.credentials.read_of_member(patcher.obj, cluster)
        is_new = self.kind.finalizer not in metadata.finalizers(patcher.obj)
        # Nothing exists without credentials, so the deletion must not wait for them: the Cluster
        # may name infrastructure that never exists, and waits for its control plane.
        if is_new and isinstance(credentials, Waiting):
            return await self._reporter.report_wait(patcher, credentials)
        # The infrastructure cluster may have appeared or disappeared during the request.
        record = self.credentials.build_record(patcher.obj, cluster) or record
        # Before the author's code runs: after a crash, the service must be found by this external
        # id (SM-09).
        await patcher.add_finalizer(self.kind, further=record)
        taken = self._held_ids.find_taken(patcher.obj)
        if taken is not None:
            return await self._reporter.report_wait(patcher, taken)
        spec = await self._author.decode_spec(patcher)
        if spec is None:
            return Result()
        if isinstance(credentials, Waiting):
            return await self._reporter.report_wait(patcher, credentials)
        version = metadata.text(patcher.obj, "spec", "version")
        scope = ManagedControlPlaneScope(
            **self._author.scope_fields(patcher.obj),
            spec=spec,
            cluster=cluster,
            version=normalize(version) if version else "",
            control_plane_endpoint=read_endpoint(patcher.obj),
            initialized=self._shape.is_initialized(patcher.obj),
            credentials=credentials,
        )
        hook = self._author.reconciler.reconcile_normal
        state = await self._author.call(patcher, hook, scope, ManagedControlPlaneState)
        if isinstance(state, Waiting):
            return await self._reporter.report_wait(patcher, state)
        return await self._write_state(patcher, cluster, state)

    async def _write_state(
        self, patcher: Patcher, cluster: Cluster, state: ManagedControlPlaneState
    ) -> Result:
        """Write endpoint and kubeconfig before the status, which makes core use them.

        See CP-02 and CP-22.
        """
        if not state.version and _VERSION in self.kind.features:
            message = "the state has no version"
            await self._reporter.refuse(patcher, constants.REASON_INVALID_RESULT, message)
        spec = add_endpoint(patcher.obj, state.endpoint, self.kind.features)
        await patcher.write_spec(spec, state.conditions)
        report = await self._reconcile_kubeconfig(patcher, cluster, state)
        facts = ControlPlaneFacts(
            initialized=True,
            versions=((normalize(state.version), 0),) if state.version else (),
            externally_managed=True,
            extra=encode_status(state.status),
        )
        status = self._shape.build_status(patcher.obj, facts, self.kind.features)
        return await self._reporter.report_state(patcher, status, _with_report(state, report))

    async def _reconcile_kubeconfig(
        self, patcher: Patcher, cluster: Cluster, state: ManagedControlPlaneState
    ) -> SecretReport:
        """Store the reported kubeconfig, unless a user has created the Secret (SEC-01)."""
        report, key = SecretReport(now=self._now()), NamespacedName(cluster.namespace, cluster.name)
        # The endpoint in the spec takes precedence: the user may have set it, and clients of the
        # cluster use it.
        endpoint = read_endpoint(patcher.obj) or state.endpoint
        try:
            content = _kubeconfig(cluster.name, endpoint, state.kubeconfig)
        except kubeconfig.KubeconfigError as error:
            message = f"the kubeconfig cannot be used: {error}"
            await self._reporter.refuse(patcher, constants.REASON_INVALID_RESULT, message)
        digest = kubeconfig.digest(content)
        secret = await self._kubeconfigs.get(patcher.obj, key, report)
        # Secrets change only with their content: each change makes core and other controllers
        # reconnect.
        if report.has_other_owner:
            return report
        if secret is None or (secret.is_managed and secret.content.digest != digest):
            secret = await self._kubeconfigs.write(patcher.obj, key, content, secret, report)
        if secret is not None and secret.is_managed and secret.content.validity is not None:
            report.check_expiry(kubeconfig.secret_name(key.name), secret.content.validity.end)
        return report

    async def _reconcile_delete(self, key: NamespacedName, patcher: Patcher) -> Result:
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        cluster = await self._caches.live_cluster(key.namespace, cluster_name_of(patcher.obj))
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        # An object with a copied id must not delete the service of the id's holder.
        taken = self._held_ids.find_taken(patcher.obj)
        if taken is not None:
            return await self._reporter.report_wait(patcher, taken)
        name = cluster_name_of(patcher.obj)
        # Without an API server, the workers' Nodes could be neither drained nor deleted (CP-34).
        waiting = self._workers.find_wait(key.namespace, name) if name else None
        if waiting is not None:
            return await self._reporter.report_wait(patcher, waiting)
        scope = ManagedControlPlaneDeleteScope(
            **self._author.delete_scope_fields(patcher.obj),
            _credentials=await self.credentials.read_of_member(patcher.obj, cluster),
            cluster=cluster,
            control_plane_endpoint=read_endpoint(patcher.obj),
        )
        hook = self._author.reconciler.reconcile_delete
        result = await self._author.call(patcher, hook, scope, Deleted)
        if isinstance(result, Waiting):
            return await self._reporter.report_wait(patcher, result)
        await self._reporter.remove_finalizer(patcher)
        return self._forget(key)

    def _forget(self, key: NamespacedName) -> Result:
        self._reporter.forget(key)
        self._author.forget(key)
        return Result()


def _kubeconfig(
    cluster: str, endpoint: Endpoint, source: str | bytes | ClusterCredentials
) -> bytes:
    """Return the kubeconfig.

    Raises KubeconfigError if core could not use it.
    """
    if isinstance(source, ClusterCredentials):
        access = kubeconfig.Access(
            server=kubeconfig.server_url(endpoint),
            authority=source.authority,
            certificate=source.certificate,
            key=source.key,
            token=source.token,
        )
        return kubeconfig.render(cluster, access)
    content = source.encode() if isinstance(source, str) else source
    # Checked here, where the author sees the error, rather than when core connects.
    kubeconfig.parse(content)
    return content


def _with_report(state: ManagedControlPlaneState, report: SecretReport) -> ManagedControlPlaneState:
    """Return the state, changed to not ready if there is no usable kubeconfig."""
    waiting = report.waiting
    if waiting is not None:
        return replace(state, ready=False, reason=waiting.reason, message=waiting.message)
    message = "; ".join(text for text in (state.message, report.message) if text)
    return replace(state, message=message)
