"""Caches for Cluster API's own objects, shared by all of a manager's controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import (
    CLUSTER_KIND,
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    CORE_GROUP,
    MACHINE_KIND,
    MACHINE_POOL_KIND,
    OWNER_REMEDIATED_CONDITION,
    WATCH_FILTER_LABEL,
)
from capsmith_runtime.contract.core import Cluster, CoreReader, Machine
from capsmith_runtime.contract.model import Object
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    ResourceType,
    Selection,
    Selections,
)
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.store import Projection
from capsmith_runtime.reconcile.kinds import core_type

_WORKER_OWNERS: Final = ("MachineSet", MACHINE_POOL_KIND)
_SPEC: Final = ("clusterName", "version", "failureDomain", "infrastructureRef")
_STATUS: Final = ("nodeRef", "phase")


# Most Machines are workers of other controllers, of which providers read few fields and write none.
# Control planes read and write their own Machines, so the few of those are kept unchanged.
def project_machine(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the Machine with only the fields that controllers read.

    Control plane Machines are returned unchanged.
    """
    if CONTROL_PLANE_LABEL in metadata.labels(obj) or not _is_worker(obj):
        return obj
    spec = _kept(metadata.mapping(obj, "spec"), _SPEC)
    spec["bootstrap"] = _kept(metadata.mapping(obj, "spec", "bootstrap"), ("dataSecretName",))
    status = _kept(metadata.mapping(obj, "status"), _STATUS)
    conditions = [
        condition
        for condition in metadata.items(obj, "status", "conditions")
        if metadata.text(condition, "type") == OWNER_REMEDIATED_CONDITION
    ]
    if conditions:
        status["conditions"] = conditions
    projected = _kept(obj, ("apiVersion", "kind", "metadata"))
    return {**projected, "spec": spec, "status": status}


def _is_worker(obj: Object) -> bool:
    return any(metadata.owner_name(obj, kind, CORE_GROUP) for kind in _WORKER_OWNERS)


def _kept(fields: Object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}


BY_CLUSTER = "cluster"
BY_CONTROL_PLANE = "controlPlane"
"""Index of control plane machines, with the same keys as BY_CLUSTER.

A cluster may have thousands of workers, which a control plane must not read.
"""
BY_OWNER = "owner"
BY_POOL = "pool"
BY_SECRET = "secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchScope:
    """The objects for which this manager is responsible, by namespace and watch filter."""

    namespaces: tuple[str, ...] = ()
    """The watched namespaces, or empty for all namespaces (CC-33)."""
    excluded_namespaces: tuple[str, ...] = ()
    """The namespaces that are not watched, if all others are."""
    watch_filter: str = ""
    """Required value of the watch-filter label, or an empty string for all objects (MG-01)."""
    own_namespace: str = ""
    """Namespace of the manager and of cluster-scoped identities' Secrets."""

    def select(
        self, *, labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Selections:
        """Return the selections for a namespaced kind in this scope, one for each list and watch.

        All of them have the given filters, but not the watch filter.
        """
        # The API server filters by this field for all namespaced kinds, so that objects in
        # excluded namespaces are never sent.
        excluded = (f"metadata.namespace!={name}" for name in self.excluded_namespaces)
        fields = ",".join(filter(None, (fields, *excluded)))
        return tuple(
            Selection(name, labels, fields, metadata_only) for name in self.namespaces or ("",)
        )

    def select_own(self, *, namespaced: bool = True) -> Selections:
        """Return the selections for a kind of the provider, including the watch filter.

        Namespaces do not limit cluster-scoped kinds.
        """
        labels = f"{WATCH_FILTER_LABEL}={self.watch_filter}" if self.watch_filter else ""
        return self.select(labels=labels) if namespaced else (Selection(labels=labels),)

    def covers_namespace(self, namespace: str) -> bool:
        """Return whether objects in ``namespace`` are in scope; cluster-scoped ones always are."""
        if not namespace:
            return True
        return namespace in (self.namespaces or (namespace,)) and (
            namespace not in self.excluded_namespaces
        )

    @property
    def is_unlimited(self) -> bool:
        """Return whether all objects of all namespaces are in scope."""
        return not (self.namespaces or self.excluded_namespaces or self.watch_filter)

    def covers(self, obj: JSON) -> bool:
        """Return whether the watch filter selects ``obj``, so that it may be written."""
        # Namespaces are not compared, because the caches contain only objects of those in scope.
        return self.watch_filter in ("", metadata.labels(obj).get(WATCH_FILTER_LABEL))


_CORE_ABSENT: Final = "install Cluster API: `clusterctl init`"
_CRD_ABSENT: Final = "install the CRD: `clusterctl init` with its provider, or `make install-crds`"


class Caches:
    """Caches for Clusters and Machines, and a factory for further caches."""

    def __init__(
        self, client: KubeClient, metrics: Metrics, reader: CoreReader, scope: WatchScope
    ) -> None:
        self.reader = reader
        self.scope = scope
        self.client = client
        self.metrics = metrics
        # Without the watch filter, which selects the provider's objects: their Clusters and
        # Machines need not have the label.
        core = scope.select()
        self._cluster_type = core_type(reader.version, CLUSTER_KIND, "clusters")
        self.clusters = self.informer(self._cluster_type, core)
        self.machines = self.informer(
            core_type(reader.version, MACHINE_KIND, "machines"),
            core,
            {BY_CLUSTER: spec_cluster, BY_CONTROL_PLANE: _control_plane, BY_POOL: _owning_pool},
            project_machine,
        )

    def cluster(self, namespace: str, name: str | None) -> Cluster | None:
        """Return a Cluster from the cache, or None if it is not cached."""
        obj = self.clusters.get(NamespacedName(namespace, name)) if name else None
        return self.reader.read_cluster(obj) if obj is not None else None

    async def live_cluster(self, namespace: str, name: str | None) -> Cluster | None:
        """Return a Cluster from the API server, or None if it does not exist.

        Call this before deletions, to detect a pause that is not in the cache yet (SM-01).
        """
        if not name:
            return None
        try:
            return self.reader.read_cluster(
                await self.client.get(self._cluster_type, NamespacedName(namespace, name))
            )
        except NotFoundError:
            return None

    def machine_of(self, obj: JSON) -> Machine | None:
        """Return the Machine that owns ``obj``, or None if it is not cached."""
        name = metadata.owner_name(obj, MACHINE_KIND, CORE_GROUP)
        owner = self.machines.get(NamespacedName(metadata.namespace(obj), name)) if name else None
        return self.reader.read_machine(owner) if owner is not None else None

    def informer(
        self,
        resource: ResourceType,
        selection: Selection | Selections,
        indexes: Mapping[str, Any] | None = None,
        projection: Projection | None = None,
    ) -> Informer:
        """Create an informer for one kind; the caller must run it."""
        return Informer(
            self.client,
            resource,
            self.metrics,
            selection=selection,
            projection=projection,
            indexes=indexes or {},
            absent=_CORE_ABSENT if resource.group == CORE_GROUP else _CRD_ABSENT,
        )


def owning_cluster(obj: JSON) -> str | None:
    """Return the name of the Cluster that owns an infrastructure cluster, or None if none does.

    See IC-17.
    """
    return metadata.owner_name(obj, CLUSTER_KIND, CORE_GROUP)


def cluster_name_of(obj: JSON) -> str | None:
    """Return the name of the Cluster that a provider's object belongs to.

    It is taken from the owner references, or else from the cluster name label. Returns None if
    neither exists.
    """
    return owning_cluster(obj) or metadata.labels(obj).get(CLUSTER_NAME_LABEL)


def spec_cluster(obj: JSON) -> Iterable[str]:
    """Yield the Cluster that a core object's spec names, as the index key ``namespace/name``."""
    yield f"{metadata.namespace(obj)}/{metadata.text(obj, 'spec', 'clusterName')}"


def _control_plane(machine: JSON) -> Iterable[str]:
    return spec_cluster(machine) if CONTROL_PLANE_LABEL in metadata.labels(machine) else ()


def cluster_of(obj: JSON) -> Iterable[str]:
    """Yield the Cluster that a provider's object belongs to, as the key ``namespace/name``."""
    name = cluster_name_of(obj)
    if name:
        yield f"{metadata.namespace(obj)}/{name}"


def owner_uids(obj: JSON) -> Iterable[str]:
    """Yield the UIDs of an object's owners, as index keys."""
    for reference in metadata.items(obj, "metadata", "ownerReferences"):
        yield metadata.text(reference, "uid")


def _owning_pool(obj: JSON) -> Iterable[str]:
    name = metadata.owner_name(obj, MACHINE_POOL_KIND, CORE_GROUP)
    if name:
        yield f"{metadata.namespace(obj)}/{name}"
