"""Context and base class of infrastructure controllers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.cluster_infrastructure import (
    ClusterInfrastructure,
    core_blocker,
)
from capsmith_runtime.infrastructure.credentials import CredentialsResolver
from capsmith_runtime.infrastructure.scopes import (
    InfraClusterView,
    OwnerScopeFields,
    reference_to,
)
from capsmith_runtime.infrastructure.workload_client import WorkloadAccess, workload_client
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.base import BaseController, ControllerContext
from capsmith_runtime.reconcile.credentials import Credentials
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Waiting

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureContext(ControllerContext):
    """The context of a controller, with the infrastructure's caches and credentials."""

    caches: InfrastructureCaches
    credentials: CredentialsResolver
    workload: WorkloadAccess | None = None
    """Clients of workload clusters, if a kind has the feature."""

    @classmethod
    def extend(
        cls,
        context: ControllerContext,
        caches: InfrastructureCaches,
        workload: WorkloadAccess | None = None,
    ) -> InfrastructureContext:
        """Add the infrastructure's caches to the context of a manager."""
        common = {field.name: getattr(context, field.name) for field in fields(ControllerContext)}
        credentials = CredentialsResolver(caches, caches.core.scope.own_namespace)
        return cls(**common, caches=caches, credentials=credentials, workload=workload)


@dataclass(frozen=True, slots=True)
class Prerequisites:
    """What must be known before a machine or a pool is created."""

    spec: Any
    """Typed spec of the machine or pool."""
    infra_cluster: InfraClusterView | None
    credentials: Credentials


class InfrastructureController(BaseController[R]):
    """Base class of the controllers of infrastructure clusters, machines and pools."""

    def __init__(
        self,
        kind: Kind[R],
        informer: Informer,
        context: InfrastructureContext,
        reconciler: R | None = None,
    ) -> None:
        super().__init__(kind, informer, context.caches.core, context, reconciler)
        self._infrastructure = context.caches
        self._credentials = context.credentials
        self._workload = context.workload

    def _workload_client(self, cluster: Cluster | None) -> KubernetesClient:
        return workload_client(self.kind, cluster, self._workload)

    def _owner_scope_fields(self, obj: JSON) -> OwnerScopeFields:
        """Return the attributes that the scopes of ``reconcile_normal`` share."""
        return {
            **self._scope_fields(obj),
            "_reference": reference_to(self.kind.resource, obj),
        }

    async def _prerequisites(
        self, patcher: Patcher, cluster: Cluster, owner: Machine | MachinePool, owner_kind: str
    ) -> Prerequisites | Result:
        """Add the finalizer and return the prerequisites; a Result if one is missing (IM-19)."""
        await patcher.add_finalizer(self.kind)
        blocker = core_blocker(cluster, owner, owner_kind)
        if blocker is not None:
            return await self._wait(patcher, blocker)
        spec = await self._decoded_spec(patcher)
        if spec is None:
            return Result()
        infrastructure = ClusterInfrastructure.of(
            self._infrastructure, self._credentials, metadata.namespace(patcher.obj), cluster
        )
        if infrastructure.blocker is not None:
            return await self._wait(patcher, infrastructure.blocker)
        credentials = infrastructure.credentials
        if isinstance(credentials, Waiting):
            return await self._wait(patcher, credentials)
        return Prerequisites(spec, infrastructure.infra_cluster, credentials)
