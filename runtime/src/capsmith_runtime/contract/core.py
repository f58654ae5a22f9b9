"""Views of Cluster and Machine in any version of core, and rules on when to leave objects alone.

Views contain only the fields on which providers act: an event that does not change the view needs
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
    """The Cluster that an object belongs to; read-only."""

    name: str
    namespace: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """A change of them wakes only machines that wait; others see it at their next reconcile."""
    deleting: bool
    """Whether it is being deleted."""
    paused: bool
    """``spec.paused``."""
    infrastructure_provisioned: bool
    """Whether the infrastructure cluster was reported as provisioned."""
    control_plane_initialized: bool
    """Whether the API server of the cluster has accepted requests."""
    control_plane_endpoint: Endpoint | None
    """``spec.controlPlaneEndpoint``; None until host and port are set."""
    infrastructure: ObjectRef | None
    """Group, kind and name of its infrastructure cluster; None if it has none."""
    pod_cidrs: tuple[str, ...]
    """``spec.clusterNetwork.pods.cidrBlocks``; empty if not set."""
    service_cidrs: tuple[str, ...]
    """``spec.clusterNetwork.services.cidrBlocks``; empty if not set."""
    api_server_port: int | None
    """``spec.clusterNetwork.apiServerPort``; None if it is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The Machine of an infrastructure machine; read-only."""

    name: str
    namespace: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    deleting: bool
    """Whether it is being deleted."""
    cluster_name: str
    """Name of the Cluster that it belongs to."""
    version: str | None
    """The desired Kubernetes version."""
    failure_domain: str | None
    """The failure domain in which to create the machine (IM-06)."""
    data_secret_name: str | None
    """None until bootstrap data are available; empty for machines of a machine pool (IM-21)."""
    pool_name: str | None
    """Name of the MachinePool that owns it; None if no MachinePool does."""
    is_control_plane: bool
    """Whether it has the label of control plane machines."""
    infrastructure: ObjectRef | None
    """Group, kind and name of its infrastructure machine."""
    node_name: str | None = None
    """Name of the Node of the machine, after it joined the cluster."""
    phase: str = field(default="", compare=False)
    """``Pending``, ``Provisioning``, ``Running`` and so on, for display: its changes are no events
    for reconcilers."""


class CoreReader(Protocol):
    """Reads the objects of one version of cluster.x-k8s.io."""

    @property
    def version(self) -> str:
        """The version of cluster.x-k8s.io: ``v1beta1`` or ``v1beta2``."""
        ...

    def read_cluster(self, obj: Object) -> Cluster:
        """Return the view of a Cluster."""
        ...

    def read_machine(self, obj: Object) -> Machine:
        """Return the view of a Machine."""
        ...


def read_cluster(
    obj: Object,
    *,
    infrastructure_provisioned: bool,
    control_plane_initialized: bool,
    infrastructure: ObjectRef | None,
) -> Cluster:
    """Return the view of a Cluster, given the fields that depend on the version of core."""
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
    """Return the view of a Machine, given the field that depends on the version of core."""
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
    """Return ``spec.controlPlaneEndpoint``, or None if it is incomplete; valid for all kinds."""
    host = metadata.text(obj, "spec", "controlPlaneEndpoint", "host")
    port = metadata.lookup(obj, "spec", "controlPlaneEndpoint", "port")
    if not host or not isinstance(port, int) or not 1 <= port <= 65535:
        return None
    return Endpoint(host, port)


def _cidrs(obj: Object, what: str) -> tuple[str, ...]:
    """Return ``spec.clusterNetwork.<what>.cidrBlocks``."""
    return tuple(metadata.items(obj, "spec", "clusterNetwork", what, "cidrBlocks"))


def _port(obj: Object) -> int | None:
    """Return ``spec.clusterNetwork.apiServerPort``."""
    port = metadata.lookup(obj, "spec", "clusterNetwork", "apiServerPort")
    return port if isinstance(port, int) else None


def _data_secret_name(obj: Object) -> str | None:
    """Return ``spec.bootstrap.dataSecretName``; empty and absent differ (IM-21)."""
    value = metadata.lookup(obj, "spec", "bootstrap", "dataSecretName")
    return value if isinstance(value, str) else None


def is_externally_managed(obj: Object) -> bool:
    """Return whether another system manages the object, so that it must not be changed (IC-15)."""
    return MANAGED_BY_ANNOTATION in metadata.annotations(obj)


def is_deleted_for_move(obj: Object) -> bool:
    """Return whether ``clusterctl move`` is deleting this copy: keep its infrastructure (MV-08)."""
    return DELETE_FOR_MOVE_ANNOTATION in metadata.annotations(obj)


def pause_message(obj: Object, kind: str, cluster: Cluster | None) -> str:
    """Return why the object is paused; empty if it is not (SM-01, ST-08)."""
    causes = []
    if cluster is not None and cluster.paused:
        causes.append("Cluster spec.paused is set to true")
    if PAUSED_ANNOTATION in metadata.annotations(obj):
        causes.append(f"{kind} has the {PAUSED_ANNOTATION} annotation")
    return ", ".join(causes)
