"""Views of Clusters and Machines for any core version, and rules for when not to reconcile.

Views contain only the fields that providers act on: an event that leaves the view unchanged needs
no reconcile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import (
    CONTROL_PLANE_LABEL,
    CORE_GROUP,
    DELETE_FOR_MOVE_ANNOTATION,
    MACHINE_POOL_KIND,
    MANAGED_BY_ANNOTATION,
    PAUSED_ANNOTATION,
)
from capsmith_runtime.contract.model import Endpoint, Object, ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Read-only view of the Cluster that an object belongs to."""

    name: str
    namespace: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """The Cluster's annotations.

    A change to an annotation enqueues only machines that are waiting; other objects see the change
    at their next reconcile.
    """
    deleting: bool
    """Whether the Cluster is being deleted."""
    paused: bool
    """Value of ``spec.paused``."""
    infrastructure_provisioned: bool
    """Whether the infrastructure cluster was reported as provisioned."""
    control_plane_initialized: bool
    """Whether the cluster's API server has ever accepted requests."""
    control_plane_endpoint: Endpoint | None
    """Value of ``spec.controlPlaneEndpoint``, or None until both host and port are set."""
    infrastructure: ObjectRef | None
    """Group, kind and name of the infrastructure cluster, or None if the Cluster has none."""
    pod_cidrs: tuple[str, ...]
    """Value of ``spec.clusterNetwork.pods.cidrBlocks``, or empty if not set."""
    service_cidrs: tuple[str, ...]
    """Value of ``spec.clusterNetwork.services.cidrBlocks``, or empty if not set."""
    api_server_port: int | None
    """Value of ``spec.clusterNetwork.apiServerPort``, or None if not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Read-only view of the Machine that owns an infrastructure machine."""

    name: str
    namespace: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    deleting: bool
    """Whether the Machine is being deleted."""
    cluster_name: str
    """Name of the Cluster that the Machine belongs to."""
    version: str | None
    """The desired Kubernetes version, or None if not set."""
    failure_domain: str | None
    """The failure domain in which to create the machine, or None if any is allowed (IM-06)."""
    data_secret_name: str | None
    """Name of the Secret with the bootstrap data.

    It is None until the data are available, and empty for machines of a machine pool (IM-21).
    """
    pool_name: str | None
    """Name of the MachinePool that owns the Machine, or None if no MachinePool does."""
    is_control_plane: bool
    """Whether the Machine has the control plane label."""
    infrastructure: ObjectRef | None
    """Group, kind and name of the Machine's infrastructure machine."""
    node_name: str | None = None
    """Name of the Machine's Node, or None until the Machine has joined the cluster."""
    phase: str = field(default="", compare=False)
    """The Machine's phase, such as ``Pending``, ``Provisioning`` or ``Running``, for display only.

    Reconcilers are not called when only the phase changes.
    """


class CoreReader(Protocol):
    """Protocol for reading Clusters and Machines in one version of cluster.x-k8s.io."""

    @property
    def version(self) -> str:
        """Return the version of cluster.x-k8s.io: ``v1beta1`` or ``v1beta2``."""
        ...

    def read_cluster(self, obj: Object) -> Cluster:
        """Return the Cluster fields that providers use, read from the API object."""
        ...

    def read_machine(self, obj: Object) -> Machine:
        """Return the Machine fields that providers use, read from the API object."""
        ...

    def read_infrastructure(self, obj: Object) -> ObjectRef | None:
        """Return a Cluster's or Machine's reference to its infrastructure, or None if not set."""
        ...


def read_cluster(
    obj: Object,
    *,
    infrastructure_provisioned: bool,
    control_plane_initialized: bool,
    infrastructure: ObjectRef | None,
) -> Cluster:
    """Return a view of a Cluster.

    The keyword arguments are the fields that are read differently in each core version.
    """
    return Cluster(
        name=metadata.name(obj),
        namespace=metadata.namespace(obj),
        uid=metadata.uid(obj),
        labels=metadata.labels(obj),
        annotations=metadata.annotations(obj),
        deleting=metadata.is_deleting(obj),
        paused=metadata.lookup(obj, "spec", "paused") is True,
        infrastructure_provisioned=infrastructure_provisioned,
        control_plane_initialized=control_plane_initialized,
        control_plane_endpoint=read_endpoint(obj),
        infrastructure=infrastructure,
        pod_cidrs=_cidrs(obj, "pods"),
        service_cidrs=_cidrs(obj, "services"),
        api_server_port=_port(obj),
    )


def read_machine(obj: Object, *, infrastructure: ObjectRef | None) -> Machine:
    """Return a view of a Machine.

    The keyword argument is the field that is read differently in each core version.
    """
    return Machine(
        name=metadata.name(obj),
        namespace=metadata.namespace(obj),
        uid=metadata.uid(obj),
        labels=metadata.labels(obj),
        annotations=metadata.annotations(obj),
        deleting=metadata.is_deleting(obj),
        cluster_name=metadata.text(obj, "spec", "clusterName"),
        version=metadata.text(obj, "spec", "version") or None,
        failure_domain=metadata.text(obj, "spec", "failureDomain") or None,
        data_secret_name=_data_secret_name(obj),
        pool_name=metadata.owner_name(obj, MACHINE_POOL_KIND, CORE_GROUP),
        is_control_plane=CONTROL_PLANE_LABEL in metadata.labels(obj),
        infrastructure=infrastructure,
        node_name=metadata.text(obj, "status", "nodeRef", "name") or None,
        phase=metadata.text(obj, "status", "phase"),
    )


def read_endpoint(obj: Object) -> Endpoint | None:
    """Return ``spec.controlPlaneEndpoint``, or None without a host and a valid port."""
    host = metadata.text(obj, "spec", "controlPlaneEndpoint", "host")
    port = metadata.lookup(obj, "spec", "controlPlaneEndpoint", "port")
    if not host or not isinstance(port, int) or not 1 <= port <= 65535:
        return None
    return Endpoint(host, port)


def _cidrs(obj: Object, what: str) -> tuple[str, ...]:
    """Return ``spec.clusterNetwork.<what>.cidrBlocks``, or an empty tuple if not set."""
    return tuple(metadata.items(obj, "spec", "clusterNetwork", what, "cidrBlocks"))


def _port(obj: Object) -> int | None:
    """Return ``spec.clusterNetwork.apiServerPort``, or None if not set."""
    port = metadata.lookup(obj, "spec", "clusterNetwork", "apiServerPort")
    return port if isinstance(port, int) else None


def _data_secret_name(obj: Object) -> str | None:
    """Return ``spec.bootstrap.dataSecretName``.

    Returns None if absent, which differs from empty (IM-21).
    """
    value = metadata.lookup(obj, "spec", "bootstrap", "dataSecretName")
    return value if isinstance(value, str) else None


def is_externally_managed(obj: Object) -> bool:
    """Return whether another system manages the object, so that it must not be changed (IC-15)."""
    return MANAGED_BY_ANNOTATION in metadata.annotations(obj)


def is_deleted_for_move(obj: Object) -> bool:
    """Return whether the object is being deleted because ``clusterctl move`` has copied it (MV-08).

    Its infrastructure must stay, because the moved object uses it.
    """
    return DELETE_FOR_MOVE_ANNOTATION in metadata.annotations(obj)


def pause_message(obj: Object, kind: str, cluster: Cluster | None) -> str:
    """Return why the object is paused, or an empty string if it is not (SM-01, ST-08)."""
    causes = []
    if cluster is not None and cluster.paused:
        causes.append("Cluster spec.paused is set to true")
    if PAUSED_ANNOTATION in metadata.annotations(obj):
        causes.append(f"{kind} has the {PAUSED_ANNOTATION} annotation")
    return ", ".join(causes)
