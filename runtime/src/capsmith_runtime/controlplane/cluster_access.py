"""Certificates, kubeconfigs and clients of workload clusters (CP-22, CP-23)."""

from __future__ import annotations

from collections.abc import Callable

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.controlplane.control_plane import ControlPlane
from capsmith_runtime.controlplane.secrets.cluster_secrets import ClusterSecrets
from capsmith_runtime.controlplane.secrets.report import SecretReport
from capsmith_runtime.controlplane.secrets.store import SecretStore
from capsmith_runtime.kube.client import KubeClient, NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.workload.client import WorkloadClients


class ClusterAccess:
    """Shared by all control planes of a manager, which runs ``informer`` and ``run``."""

    def __init__(self, caches: Caches, field_manager: str) -> None:
        self._store = SecretStore(caches)
        self._secrets = ClusterSecrets(self._store)
        self._clients = WorkloadClients(caches.client, caches.metrics, field_manager=field_manager)

    @property
    def informer(self) -> Informer:
        """The informer of cluster Secrets."""
        return self._store.informer

    async def run(self) -> None:
        """Close idle connections until cancelled."""
        await self._clients.run()

    def set_handler(self, handler: Callable[[NamespacedName], None]) -> None:
        """Call the handler with a cluster whose Secrets others have changed."""
        self._store.set_handler(handler)

    async def reconcile_secrets(self, control_plane: ControlPlane) -> SecretReport:
        """Create and renew the Secrets; new keys only as long as no Machine can use old ones."""
        values = metadata.annotations(control_plane.obj)
        pending = control_plane.annotations.pending_machine in values
        in_use = pending or control_plane.machines or control_plane.foreign_machines
        return await self._secrets.reconcile(
            control_plane.obj, control_plane.cluster, generate=not in_use
        )

    async def workload(self, cluster: Cluster) -> KubeClient:
        """Return a client of the workload cluster.

        Raises NotAvailableError if there is no usable kubeconfig.
        """
        return await self._clients.get(cluster.namespace, cluster.name)
