"""Workload clusters in memory, whose API servers may fail, hang or be unreachable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from capsmith_runtime.kube.client import JSON, NamespacedName, Page, ResourceType, Selection
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.testing.addon.objects import WorkloadObjects
from capsmith_runtime.workload.client import ClusterUnreachableError
from capsmith_runtime.workload.kubeconfig import Access, render, secret_name

T = TypeVar("T")

_POLL_SECONDS = 0.01
Fault = Callable[[str, str, str], None]
"""Function that may raise an error, given a request's cluster, verb and kind."""


class ManagementObjects(Protocol):
    """Protocol for the management cluster, which has the kubeconfigs."""

    def find(self, kind: str, key: NamespacedName) -> JSON | None:
        """Return an object, or None if it does not exist."""
        ...


class WorkloadClusters:
    """All workload clusters by name, and their faults; replaces the manager's clients for them."""

    def __init__(self, management: ManagementObjects) -> None:
        self._management = management
        self.objects: dict[str, WorkloadObjects] = {}
        """Objects of each cluster to which the manager has connected."""
        self.unreachable: set[str] = set()
        """Clusters whose API servers do not respond."""
        self.hanging: set[str] = set()
        """Clusters whose requests do not return until they are removed from this set."""
        self.before: Fault = lambda cluster, verb, kind: None
        """Function that may raise an error instead of a request."""
        self.after: Fault = lambda cluster, verb, kind: None
        """Function that may raise an error although a request has had its effect."""

    async def get(self, namespace: str, cluster: str) -> WorkloadClient:
        """Return the client for a cluster.

        Raises NotAvailableError if the cluster has no kubeconfig.
        """
        name = secret_name(cluster)
        if self._management.find("Secret", NamespacedName(namespace, name)) is None:
            waiting = Waiting(
                "WaitingForKubeconfig", f"Secret {name} does not exist", requeue_after=None
            )
            raise NotAvailableError(waiting)
        objects = self.objects.setdefault(cluster, WorkloadObjects())
        return WorkloadClient(self, cluster, objects)

    def invalidate(self, namespace: str, cluster: str) -> None:
        """Do nothing: nothing is cached here."""

    async def run(self) -> None:
        """Do nothing: there are no connections to close."""

    async def connect(self, cluster: str) -> None:
        """Wait while a cluster hangs.

        Raises ClusterUnreachableError if the cluster is unreachable.
        """
        while cluster in self.hanging:
            await asyncio.sleep(_POLL_SECONDS)
        if cluster in self.unreachable:
            message = f"workload cluster {cluster}: no answer"
            raise ClusterUnreachableError(message, is_of_runtime=True)


class WorkloadClient:
    """Client for one workload cluster in memory, as reconcilers of add-ons use it."""

    def __init__(self, clusters: WorkloadClusters, cluster: str, objects: WorkloadObjects) -> None:
        self._clusters = clusters
        self._cluster = cluster
        self._objects = objects

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        """Apply an object; see `WorkloadObjects.apply`."""
        return await self._send(
            "apply", resource, lambda: self._objects.apply(resource, obj, force=force)
        )

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        """Return an object; see `WorkloadObjects.get`."""
        return await self._send("get", resource, lambda: self._objects.get(resource, key))

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return objects on one page; see `WorkloadObjects.list_page`."""
        return await self._send(
            "list", resource, lambda: self._objects.list_page(resource, selection)
        )

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        """Delete an object; see `WorkloadObjects.delete`."""
        await self._send("delete", resource, lambda: self._objects.delete(resource, key))

    async def _send(
        self, verb: str, resource: ResourceType, request: Callable[[], Awaitable[T]]
    ) -> T:
        await self._clusters.connect(self._cluster)
        self._clusters.before(self._cluster, verb, resource.kind)
        result = await request()
        self._clusters.after(self._cluster, verb, resource.kind)
        return result


def build_kubeconfig(cluster: NamespacedName) -> bytes:
    """Return a kubeconfig for a cluster; its server is ``https://<name>.<namespace>.invalid``."""
    server = f"https://{cluster.name}.{cluster.namespace}.invalid"
    return render(cluster.name, Access(server=server, token="of-the-test"))
