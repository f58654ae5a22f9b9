"""Controller of one kind that implements Resource."""

from __future__ import annotations

from functools import partial
from typing import Any

from capsmith_runtime.api.encoding import status_fields
from capsmith_runtime.contract import constants, guards, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.status_writer import with_extra
from capsmith_runtime.infrastructure.cluster_infrastructure import ClusterInfrastructure
from capsmith_runtime.infrastructure.context import InfrastructureContext, InfrastructureController
from capsmith_runtime.infrastructure.scopes import InfraClusterView
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.resource.api import (
    Owner,
    ResourceDeleteScope,
    ResourceReconciler,
    ResourceScope,
    ResourceState,
)
from capsmith_runtime.resource.caches import ResourceCaches, ResourceKind


class ResourceController(InfrastructureController[ResourceReconciler[Any]]):
    """Reconcile one kind of resources, with or without a Cluster."""

    def __init__(
        self, kind: ResourceKind, resources: ResourceCaches, context: InfrastructureContext
    ) -> None:
        super().__init__(kind, resources.informers[kind.resource.kind], context)
        self._resources = resources

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        obj = patcher.obj
        if guards.deleted_for_move(obj):
            return Result()
        name = self._resources.cluster_name(obj)
        if metadata.deleting(obj):
            clean_up = partial(self._clean_up, patcher)
            return await self._finalize(patcher, key, name, clean_up)
        cluster = self._caches.cluster(key.namespace, name)
        if await self._is_paused(patcher, cluster):
            return Result()
        if name is not None and cluster is None:
            # The Cluster might be paused: ``clusterctl move`` and ``kubectl apply`` create it
            # together with the resource, and an event of the Cluster enqueues this object.
            message = f"Cluster {name} does not exist"
            return await self._wait(
                patcher, Waiting(constants.REASON_CLUSTER_NOT_FOUND, message, None)
            )
        return await self._normal(patcher, cluster)

    async def _normal(self, patcher: Patcher, cluster: Cluster | None) -> Result:
        await patcher.add_finalizer(self.kind)
        await self._adopt_identity(patcher, cluster)
        spec = await self._decoded_spec(patcher)
        if spec is None:
            return Result()
        credentials = self._credentials.of_cluster(patcher.obj)
        if isinstance(credentials, Waiting):
            return await self._wait(patcher, credentials)
        scope = ResourceScope(
            **self._owner_scope_fields(patcher.obj),
            spec=spec,
            cluster=cluster,
            owners=_owners(patcher.obj),
            credentials=credentials,
            infra_cluster=self._infra_cluster(patcher.obj, cluster),
        )
        state = await self._call(patcher, self.reconciler.reconcile_normal, scope, ResourceState)
        if isinstance(state, Waiting):
            return await self._wait(patcher, state)
        status = dict(metadata.mapping(patcher.obj, "status"))
        return await self._provisioned(
            patcher, with_extra(status, status_fields(state.status)), state
        )

    async def _adopt_identity(self, patcher: Patcher, cluster: Cluster | None) -> None:
        """Record the identity of the cluster's infrastructure, unless the object names one.

        When a cluster is deleted its infrastructure cluster may be gone before the resource, which
        still needs the credentials, and the identity must stay until then.
        """
        spec = metadata.mapping(patcher.obj, "spec")
        if not self._infrastructure.kinds.identities or cluster is None or "identityRef" in spec:
            return
        infra_cluster = self._infrastructure.infra_cluster_of(cluster) or {}
        reference = metadata.mapping(infra_cluster, "spec", "identityRef")
        if reference:
            await patcher.write_spec({**spec, "identityRef": dict(reference)})

    def _infra_cluster(self, obj: JSON, cluster: Cluster | None) -> InfraClusterView | None:
        name = self._resources.cluster_name(obj)
        if name is None:
            return None
        namespace = metadata.namespace(obj)
        return ClusterInfrastructure.of(
            self._infrastructure, self._credentials, namespace, cluster, name
        ).infra_cluster

    async def _clean_up(self, patcher: Patcher, cluster: Cluster | None) -> Result:
        scope = ResourceDeleteScope(
            **self._delete_scope_fields(patcher.obj),
            _credentials=self._credentials.of_cluster(patcher.obj),
            cluster=cluster,
            owners=_owners(patcher.obj),
            infra_cluster=self._infra_cluster(patcher.obj, cluster),
        )
        return await self._call_delete(patcher, self.reconciler.reconcile_delete, scope)


def _owners(obj: JSON) -> tuple[Owner, ...]:
    return tuple(
        Owner(
            group=metadata.text(reference, "apiVersion").rpartition("/")[0],
            kind=metadata.text(reference, "kind"),
            name=metadata.text(reference, "name"),
            uid=metadata.text(reference, "uid"),
            controller=reference.get("controller") is True,
        )
        for reference in metadata.items(obj, "metadata", "ownerReferences")
    )
