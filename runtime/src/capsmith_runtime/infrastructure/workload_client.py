"""The workload cluster client for kinds with the feature ``workloadClient``."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.errors import NotDeclaredError
from capsmith_runtime.kube.client import KubeClient
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.kubernetes_client import ClientSession, KubernetesClient
from capsmith_runtime.reconcile.permissions import Anything
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting

FEATURE: Final = "workloadClient"
REASON_NOT_INITIALIZED: Final = "WaitingForControlPlaneInitialized"


class WorkloadAccess(Protocol):
    """Creates clients for workload clusters from their kubeconfig Secrets."""

    async def get(self, namespace: str, cluster: str) -> KubeClient:
        """Return the client for a cluster.

        Raises NotAvailableError if the cluster has no usable kubeconfig Secret.
        """
        ...

    async def run(self) -> None:
        """Close idle clients until the task is cancelled."""
        ...


class WorkloadAccessFactory(Protocol):
    """Protocol for the function that creates a manager's WorkloadAccess."""

    def __call__(
        self, management: KubeClient, metrics: Metrics, *, field_manager: str
    ) -> WorkloadAccess:
        """Create the WorkloadAccess, which reads kubeconfigs with the ``management`` client."""
        ...


def create_workload_client(
    kind: Kind[Any], cluster: Cluster | None, access: WorkloadAccess | None
) -> KubernetesClient:
    """Return a workload cluster client that does not connect until its first request.

    Methods of the client raise NotDeclaredError if the kind lacks the feature, and
    NotAvailableError until the cluster's control plane is initialised.
    """
    name = kind.resource.kind

    async def open_client() -> KubeClient:
        if access is None or FEATURE not in kind.features:
            switch = f"features: {{{FEATURE}: true}}"
            raise NotDeclaredError(f"{name} has no workload client: add {switch} to provider.yaml")
        if cluster is None or not cluster.control_plane_initialized:
            message = "the control plane of the cluster is not initialized"
            raise NotAvailableError(Waiting(REASON_NOT_INITIALIZED, message, None))
        return await access.get(cluster.namespace, cluster.name)

    loop = asyncio.get_running_loop()
    return KubernetesClient(ClientSession(open_client, Anything(), "", loop))
