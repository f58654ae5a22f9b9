"""Reconciles bootstrap configurations, as described in BC-12.

A worker whose cluster is ready takes three requests: one reads the Secret, one creates it, and one
writes the status. Configurations have no finalizer: Secret and lock are deleted with their owners,
so a deletion needs neither Machine nor Cluster (BC-19).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.bootstrap.api import (
    BootstrapConfigReconciler,
    BootstrapConfigScope,
    BootstrapDocument,
)
from capsmith_runtime.bootstrap.data_secrets import (
    DataSecretNameTakenError,
    DataSecretStore,
    create_certificate_reader,
)
from capsmith_runtime.bootstrap.init_lock import ControlPlaneInitMutex
from capsmith_runtime.bootstrap.owners import ConfigOwner, ConfigOwnerFinder
from capsmith_runtime.contract import bootstrap, constants, metadata
from capsmith_runtime.contract.bootstrap import BootstrapStatusWriter, DataContent, data_secret_of
from capsmith_runtime.contract.core import Cluster, is_deleted_for_move
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import Patcher, paused, ready
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner, resync_seconds
from capsmith_runtime.reconcile.scopes import BootstrapData
from capsmith_runtime.reconcile.status_reporter import StatusReporter

BootstrapConfigKind = Kind[BootstrapConfigReconciler[Any]]

LOCK_RETRY_SECONDS: Final = 30.0
"""Seconds after which a machine tries to take the lock again, in case it missed the event."""
NAME_TAKEN_RETRY_SECONDS: Final = 60.0


def utc_now() -> datetime:
    """Return the current time in UTC, for scheduling when to refresh the data.

    It is read from ``time.time()``, which the conformance tests set.
    """
    return datetime.fromtimestamp(time.time(), UTC)


def is_owned_by_machine(config: JSON) -> bool:
    """Return whether a configuration belongs to a Machine rather than to a MachinePool."""
    return metadata.owner_name(config, constants.MACHINE_KIND, constants.CORE_GROUP) is not None


class BootstrapConfigController:
    """Reconciles one BootstrapConfig kind."""

    def __init__(
        self,
        kind: BootstrapConfigKind,
        informer: Informer,
        caches: Caches,
        context: ControllerContext,
        owners: ConfigOwnerFinder,
        writer: BootstrapStatusWriter,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.kind = kind
        self._context = context
        self._caches = caches
        # Core panics on failure fields in a config of a MachinePool (MP-13).
        self._reporter = StatusReporter(kind, context, has_failure_fields=is_owned_by_machine)
        self._author = AuthorStep(kind, context, self._reporter)
        self._runner = ReconcileRunner(
            kind,
            informer,
            context,
            self._reporter,
            new_patcher=partial(Patcher, context.client, informer, context.writer),
            forget=self._forget,
        )
        refresh_data = type(self._author.reconciler).refresh_data
        self._refreshes_machines = refresh_data is not BootstrapConfigReconciler.refresh_data
        self._owners = owners
        self._status = writer
        self._now = now
        self._secrets = DataSecretStore(context.client)
        self._lock = ControlPlaneInitMutex(context.client, caches.reader.version)
        self._owner_checked: dict[NamespacedName, str] = {}
        """When to refresh the data, for configurations whose Secret has a correct owner reference.

        Correct in the current API version. The time is empty for never, or if it was not read.
        """

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile a configuration.

        Failures are reported in its conditions.
        """
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        obj = patcher.obj
        if is_deleted_for_move(obj) or metadata.is_deleting(obj):
            return self._forget(key)
        owner = self._owners.find(obj)
        cluster = self._caches.cluster(key.namespace, owner.cluster_name if owner else None)
        # Without owners there is nothing to do yet; their events requeue this object (BC-11).
        if owner is None or cluster is None:
            return Result()
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            # A backup tool may restore objects without their owners in the meantime (SM-11).
            self._owner_checked.pop(key, None)
            return Result()
        if owner.is_control_plane and cluster.control_plane_initialized:
            await self._lock.release(cluster)
        return await self._reconcile_normal(patcher, key, cluster, owner)

    async def _reconcile_normal(
        self, patcher: Patcher, key: NamespacedName, cluster: Cluster, owner: ConfigOwner
    ) -> Result:
        own_name, used_name = data_secret_of(patcher.obj), owner.data_secret_name
        if owner.pool is None and self._status.is_created(patcher.obj):
            if self._is_refreshable(patcher, owner):
                return await self._refresh(patcher, key, cluster, owner)
            if key not in self._owner_checked:
                await self._secrets.ensure_owner(patcher.obj, cluster.name)
                self._owner_checked[key] = ""
            return await self._report_created(patcher, own_name)
        if used_name is not None and (owner.pool is None or used_name != own_name):
            return await self._restore_status(patcher, cluster, used_name)
        if not cluster.infrastructure_provisioned:
            return await self._reporter.report_wait(patcher, _no_infrastructure(cluster))
        try:
            in_use = used_name is not None
            content = await self._secrets.read(patcher.obj, cluster.name, in_use=in_use)
        except DataSecretNameTakenError as error:
            await self._reporter.report_error(
                patcher, bootstrap.REASON_DATA_SECRET_NAME_TAKEN, str(error)
            )
            return Result(NAME_TAKEN_RETRY_SECONDS)
        if content is not None and not self._is_outdated(content, patcher, owner):
            return await self._report_created(patcher, own_name, content)
        # A machine in deletion or in an in-place update keeps the data it has (BC-15).
        if owner.deleting or bootstrap.is_updating_in_place(patcher.obj):
            if content is None:
                return Result()
            return await self._report_created(patcher, own_name, content)
        return await self._generate(patcher, cluster, owner, content)

    async def _generate(
        self,
        patcher: Patcher,
        cluster: Cluster,
        owner: ConfigOwner,
        current: DataContent | None,
    ) -> Result:
        is_first = False
        if not cluster.control_plane_initialized and current is None:
            waiting = await self._acquire_init_lock(cluster, owner)
            if waiting is not None:
                return await self._reporter.report_wait(patcher, waiting)
            is_first = True
        hook = self._author.reconciler.bootstrap_data
        return await self._store(patcher, cluster, owner, hook, current, is_first=is_first)

    def _is_refreshable(self, patcher: Patcher, owner: ConfigOwner) -> bool:
        """Return whether a Machine that has data may still need them, and the author renews them.

        This matches kubeadm's provider, which extends a token until the machine has a Node.
        """
        machine = owner.machine
        return (
            self._refreshes_machines
            and machine is not None
            and not machine.node_name
            and not machine.deleting
            and not bootstrap.is_updating_in_place(patcher.obj)
        )

    async def _refresh(
        self, patcher: Patcher, key: NamespacedName, cluster: Cluster, owner: ConfigOwner
    ) -> Result:
        """Let the author renew the data of a Machine that has not joined, once they are due."""
        name = data_secret_of(patcher.obj)
        known = self._owner_checked.get(key)
        if known and self._seconds_left(known) != 0:
            return await self._report_created(patcher, name, refresh_at=known)
        try:
            content = await self._secrets.read(patcher.obj, cluster.name, in_use=True)
        except DataSecretNameTakenError:
            # Another object replaced the Secret after the data were reported.
            content = None
        if content is None or self._seconds_left(content.refresh_at) != 0:
            return await self._report_created(patcher, name, content)
        hook = self._author.reconciler.refresh_data
        return await self._store(patcher, cluster, owner, hook, content, is_first=False)

    async def _store(
        self,
        patcher: Patcher,
        cluster: Cluster,
        owner: ConfigOwner,
        hook: Callable[..., object],
        current: DataContent | None,
        *,
        is_first: bool,
    ) -> Result:
        """Call the author's ``hook``, and write its data where they differ from ``current``."""
        spec = await self._author.decode_spec(patcher)
        if spec is None:
            return Result()
        scope = self._scope(patcher, spec, cluster, owner, current, is_first=is_first)
        document = await self._author.call(patcher, hook, scope, BootstrapDocument)
        if isinstance(document, Waiting):
            return await self._reporter.report_wait(patcher, document)
        content = self._content(document, owner, patcher.obj, scope)
        if content != current:
            replace = current is not None
            await self._secrets.write(patcher.obj, cluster.name, content, replace=replace)
        name = data_secret_of(patcher.obj)
        return await self._report_created(patcher, name, content, document.status)

    def _scope(
        self,
        patcher: Patcher,
        spec: Any,
        cluster: Cluster,
        owner: ConfigOwner,
        current: DataContent | None,
        *,
        is_first: bool,
    ) -> BootstrapConfigScope[Any]:
        fields = self._author.scope_fields(patcher.obj)
        if current is not None and current.external_id:
            # A move changes the UID of the configuration, but keeps the Secret.
            fields["external_id"] = current.external_id
        return BootstrapConfigScope(
            **fields,
            spec=spec,
            cluster=cluster,
            machine=owner.machine,
            machine_pool=owner.pool,
            is_first_control_plane=is_first,
            node_taints=() if owner.is_control_plane else (bootstrap.UNINITIALIZED_TAINT,),
            previous=BootstrapData(current.value, current.format) if current else None,
            _certificates=create_certificate_reader(self._context.client, cluster),
            _loop=asyncio.get_running_loop(),
        )

    async def _acquire_init_lock(self, cluster: Cluster, owner: ConfigOwner) -> Waiting | None:
        """Return None if the Machine may initialise the cluster; otherwise what it waits for."""
        reason = bootstrap.REASON_WAITING_FOR_CONTROL_PLANE
        if owner.machine is None or not owner.is_control_plane:
            message = f"the control plane of Cluster {cluster.name} is not initialized yet"
            return Waiting(reason, message, None)
        # A move or a restore loses the status of the control plane, but none of its machines.
        holder = self._owners.machine_with_data(owner.machine)
        holder = holder or await self._lock.acquire(cluster, owner.machine)
        if holder != owner.machine.name:
            by = f"Machine {holder}" if holder else "an unknown machine"
            message = f"the control plane of Cluster {cluster.name} is being initialized by {by}"
            return Waiting(reason, message, LOCK_RETRY_SECONDS)
        # The lock may be free because the cluster is initialised, which the cache may not show yet.
        live = await self._caches.live_cluster(cluster.namespace, cluster.name)
        if live is None or live.paused or live.control_plane_initialized:
            return Waiting(reason, f"Cluster {cluster.name} is changing", 1.0)
        return None

    async def _restore_status(self, patcher: Patcher, cluster: Cluster, used_name: str) -> Result:
        """Write the status again for a Machine that has data; a move drops the status (ST-11)."""
        content = None
        if used_name == data_secret_of(patcher.obj):
            with suppress(DataSecretNameTakenError):
                content = await self._secrets.read(patcher.obj, cluster.name, in_use=True)
        return await self._report_created(patcher, used_name, content)

    def _content(
        self,
        document: BootstrapDocument,
        owner: ConfigOwner,
        config: JSON,
        scope: BootstrapConfigScope[Any],
    ) -> DataContent:
        refresh_at = expiry = ""
        # The machine that initialises the cluster does not join one: data generated later, when it
        # is no longer the first, would be for another role.
        renewed = self._refreshes_machines and not scope.is_first_control_plane
        if document.refresh_after is not None and (owner.pool is not None or renewed):
            refresh_at = _timestamp(self._now().timestamp() + document.refresh_after)
        if document.certificates_expiry is not None:
            expiry = _timestamp(document.certificates_expiry.timestamp())
        return DataContent(
            value=document.value,
            format=document.format,
            refresh_at=refresh_at,
            inputs=owner.inputs_digest(config),
            certificates_expiry=expiry,
            external_id=scope.external_id,
        )

    def _is_outdated(self, content: DataContent, patcher: Patcher, owner: ConfigOwner) -> bool:
        """Return whether machines that a pool creates later need new data (MP-19)."""
        if owner.pool is None:
            return False
        changed = bool(content.inputs) and content.inputs != owner.inputs_digest(patcher.obj)
        return changed or self._seconds_left(content.refresh_at) == 0

    def _seconds_left(self, refresh_at: str) -> float | None:
        """Return the seconds until data with this time must be renewed, or None for never."""
        if not refresh_at:
            return None
        try:
            due = datetime.fromisoformat(refresh_at)
        except ValueError:
            return 0
        if due.tzinfo is None:
            return 0
        return max(0.0, due.timestamp() - self._now().timestamp())

    def _forget(self, key: NamespacedName) -> Result:
        self._owner_checked.pop(key, None)
        self._reporter.forget(key)
        self._author.forget(key)
        return Result()

    async def _report_created(
        self,
        patcher: Patcher,
        secret: str,
        content: DataContent | None = None,
        extra: Any = None,
        *,
        refresh_at: str = "",
    ) -> Result:
        """Report in the status that the data exist, and the name of their Secret."""
        if content is not None and content.certificates_expiry:
            annotation = bootstrap.CERTIFICATES_EXPIRY_ANNOTATION
            await patcher.annotate(annotation, content.certificates_expiry)
        key = NamespacedName(metadata.namespace(patcher.obj), metadata.name(patcher.obj))
        if content is not None:
            refresh_at = self._owner_checked[key] = content.refresh_at
        status = self._status.build_created_status(
            patcher.obj, secret, encode_status(extra), self.kind.features
        )
        status = self._context.writer.remove_failure(status)
        await patcher.write_status(status, (ready(True, constants.REASON_READY, ""), paused("")))
        self._reporter.forget(key)
        left = self._seconds_left(refresh_at)
        if left is None:
            return Result()
        resync = resync_seconds(self._context)
        return Result(left if resync is None else min(left, resync))


def _no_infrastructure(cluster: Cluster) -> Waiting:
    message = f"infrastructure of Cluster {cluster.name} is not provisioned yet"
    return Waiting(constants.REASON_WAITING_FOR_INFRASTRUCTURE, message, None)


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(math.ceil(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
