"""Controller for machine templates, which writes the capacity for autoscaling from zero (IM-16)."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import constants, external_id, metadata
from capsmith_runtime.contract.core import Cluster, pause_message
from capsmith_runtime.contract.status_writer import set_or_drop
from capsmith_runtime.errors import TerminalError
from capsmith_runtime.infrastructure.api import (
    InfraMachineReconciler,
    InfraMachineTemplateScope,
    MachineCapacity,
)
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.kinds import InfraMachineKind
from capsmith_runtime.infrastructure.prerequisites import ClusterInfrastructure
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.patch import write
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.reconcile.author_step import (
    AuthorCalls,
    check_result,
    connect_scope,
    describe_owner,
)
from capsmith_runtime.reconcile.caches import cluster_name_of
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.runner import add_resync
from capsmith_runtime.reconcile.sessions import Credentials
from capsmith_runtime.reconcile.status_reporter import describe_failure, limit_message

_NO_CLUSTER = Waiting(
    constants.REASON_IDENTITY_NOT_FOUND, "no Cluster owns the template", requeue_after=None
)


class MachineTemplateController:
    """Writes the capacity of machines into the status of one kind of machine template."""

    def __init__(
        self, kind: InfraMachineKind, informer: Informer, context: InfrastructureContext
    ) -> None:
        self._kind = kind
        self._reconciler: InfraMachineReconciler[Any] = kind.reconciler()
        self._author = AuthorCalls(self._reconciler, context.sessions)
        self._informer = informer
        self._context = context
        self._log = get_logger("template", kind=informer.resource.kind)

    async def reconcile(self, key: NamespacedName) -> Result:
        """Write the capacity of a template's machines into its status."""
        obj = self._informer.get(key)
        if obj is None or metadata.is_deleting(obj):
            self._author.forget(key)
            return Result()
        cluster = self._context.caches.core.cluster(key.namespace, cluster_name_of(obj))
        # Templates have no Paused condition, so a pause only postpones the write of the capacity.
        if pause_message(obj, "", cluster):
            return Result()
        try:
            fields = metadata.mapping(obj, "spec", "template", "spec")
            spec = decode(self._kind.spec, fields, "spec.template.spec")
        except DecodingError as error:
            # The conditions of its machines report the error; templates have no conditions.
            self._log.warning("cannot read the template", object=str(key), error=str(error))
            return Result()
        try:
            capacity = await self._call(key, obj, await self._scope(obj, cluster, spec))
        except TerminalError:
            # No retry until the template changes, which enqueues it again.
            return Result()
        if isinstance(capacity, Waiting):
            # No event wakes a template when the identity that its machines name changes.
            return add_resync(Result(capacity.requeue_after), self._context)
        # An unknown capacity removes an earlier one, on which the autoscaler would still rely.
        await self._write(obj, capacity or MachineCapacity(resources={}))
        return Result()

    async def _scope(
        self, obj: JSON, cluster: Cluster | None, spec: Any
    ) -> InfraMachineTemplateScope[Any]:
        infra_cluster, credentials = None, self._without_cluster()
        if cluster is not None:
            context = self._context
            infrastructure = await ClusterInfrastructure.of(
                context.caches,
                context.credentials,
                cluster.namespace,
                cluster,
                user=self._machine_of(obj),
            )
            infra_cluster, credentials = infrastructure.infra_cluster, infrastructure.credentials
        key = NamespacedName(metadata.namespace(obj), metadata.name(obj))
        return InfraMachineTemplateScope(
            name=key.name,
            namespace=key.namespace,
            external_id=external_id.of(obj, self._informer.resource.group),
            logger=get_logger("author", kind=self._informer.resource.kind, object=str(key)),
            spec=spec,
            cluster=cluster,
            infra_cluster=infra_cluster,
            _credentials=credentials,
        )

    def _machine_of(self, obj: JSON) -> JSON:
        """Return a machine as it would be created from a template; it may name its own identity."""
        spec = metadata.mapping(obj, "spec", "template", "spec")
        return {**obj, "kind": self._kind.resource.kind, "spec": spec}

    def _without_cluster(self) -> Credentials | Waiting:
        """Return the credentials of a template that no Cluster owns.

        They are empty if the provider has no identities, otherwise Waiting is returned.
        """
        return _NO_CLUSTER if self._context.caches.kinds.identities else Credentials()

    async def _call(
        self, key: NamespacedName, obj: JSON, scope: InfraMachineTemplateScope[Any]
    ) -> MachineCapacity | Waiting | None:
        """Return the capacity of a template's machines.

        Templates have no conditions, so an error is reported as an event.
        """
        hook = self._reconciler.capacity
        argument = scope.spec if self._reconciler._capacity_gets_spec else scope
        try:
            with connect_scope(scope, self._context, obj):
                result = await self._author.call(
                    key, hook, scope, arguments=(argument,), owner=describe_owner(obj)
                )
            return None if result is None else check_result(hook, result, MachineCapacity)
        except NotAvailableError as error:
            return error.waiting
        # Not a failure: the queue repeats the call later.
        except DeferredError:
            raise
        except Exception as error:
            reason, message = describe_failure(error)
            self._context.events.warn(obj, reason, limit_message(message))
            raise

    async def _write(self, obj: JSON, capacity: MachineCapacity) -> None:
        status = dict(metadata.mapping(obj, "status"))
        set_or_drop(status, "capacity", dict(capacity.resources))
        system = {
            "architecture": capacity.architecture,
            "operatingSystem": capacity.operating_system,
        }
        set_or_drop(status, "nodeInfo", {name: value for name, value in system.items() if value})
        await write(
            self._context.client,
            self._informer.resource,
            obj,
            {**obj, "status": status},
            self._informer.update_from_write,
        )
