"""Objects to delete before an infrastructure cluster: machines, pools and their resources.

Core deletes a cluster's machines before its infrastructure.  The garbage collector, the deletion of
a namespace and tools such as Argo CD delete everything together: without the infrastructure
cluster, machines would lose their region, their network and their credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CLUSTER_NAME_LABEL
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, Selection
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import BY_CLUSTER, cluster_name_of
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.results import Waiting

WAITING_FOR_MACHINES: Final = "WaitingForMachineDeletion"
_PAGE: Final = 500
_RELIST_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DependentKind:
    """A kind whose objects must be deleted before the infrastructure cluster that they use."""

    informer: Informer
    finalizer: str
    """The kind's finalizer; an object without it has no infrastructure."""
    of_cluster: Callable[[str, str], Iterable[JSON]]
    """Function that returns a Cluster's cached objects, given the Cluster's namespace and name."""
    cluster_name: Callable[[JSON], str | None] = cluster_name_of
    is_labelled: bool = True
    """Whether all objects of the kind have the cluster name label, so that a list can select them.
    """

    @classmethod
    def of_machines(cls, kind: Kind[Any], informer: Informer) -> DependentKind:
        """Return the DependentKind for a kind of infrastructure machine or pool.

        Core labels objects of these kinds (IM-17).
        """
        of_cluster = partial(_of_cluster, informer)
        return cls(informer=informer, finalizer=kind.finalizer, of_cluster=of_cluster)

    def has_any(self, objects: Iterable[JSON]) -> bool:
        """Return whether at least one of ``objects`` may have infrastructure."""
        return any(self.finalizer in metadata.finalizers(obj) for obj in objects)


def _of_cluster(informer: Informer, namespace: str, name: str) -> Iterable[JSON]:
    return informer.by_index(BY_CLUSTER, f"{namespace}/{name}")


class ClusterDependents:
    """Finds the objects that must be deleted before an infrastructure cluster."""

    def __init__(self, client: KubeClient, kinds: Sequence[DependentKind]) -> None:
        """Initialise without known dependents. ``kinds`` may grow until the informers run."""
        self._client = client
        self._kinds = kinds
        self._listed: set[NamespacedName] = set()
        """Infrastructure clusters for which a live list found no labelled dependents.

        Dependents that are created later appear in the cache.
        """

    async def find_wait(self, key: NamespacedName, cluster: str | None) -> Waiting | None:
        """Return Waiting while an infrastructure cluster has dependents, otherwise None.

        An event reports the deletion of the last cached dependent. Dependents that are not cached,
        because they are new or belong to another manager, are listed again after some seconds.
        """
        if not cluster:
            return None
        # The caches first: they cost no request, and the deletion of a cached object is an event.
        left = [
            kind for kind in self._kinds if kind.has_any(kind.of_cluster(key.namespace, cluster))
        ]
        if left:
            return _wait(left, cluster, None)
        if key in self._listed:
            return None
        left = [
            kind for kind in self._kinds if await self._has_listed(kind, key.namespace, cluster)
        ]
        if left:
            return _wait(left, cluster, _RELIST_SECONDS)
        self._listed.add(key)
        return None

    def forget(self, key: NamespacedName) -> None:
        """Drop the recorded state of an infrastructure cluster that no longer exists."""
        self._listed.discard(key)

    async def _has_listed(self, kind: DependentKind, namespace: str, cluster: str) -> bool:
        if not kind.is_labelled:
            return False
        labels = f"{CLUSTER_NAME_LABEL}={cluster}"
        # Finalizers decide, so metadata is enough.
        selection = Selection(namespace=namespace, labels=labels, metadata_only=True)
        token = ""
        while True:
            page = await self._client.list_page(
                kind.informer.resource, selection, limit=_PAGE, token=token
            )
            if kind.has_any(page.items):
                return True
            token = page.token
            if not token:
                return False


def _wait(left: Sequence[DependentKind], cluster: str, seconds: float | None) -> Waiting:
    # Without names: a message that changed with each machine would cause a write for each.
    kinds = ", ".join(kind.informer.resource.plural for kind in left)
    message = f"{kinds} of Cluster {cluster} must be deleted first"
    return Waiting(WAITING_FOR_MACHINES, message, seconds)
