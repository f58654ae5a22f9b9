"""MachinePools, the Machines that core creates for them, and the status of a provider's pools.

The fields read here are the same in all of core's versions, except for the group in references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.constants import (
    CORE_GROUP,
    MACHINE_POOL_KIND,
    OWNER_REMEDIATED_CONDITION,
)
from capsmith_runtime.contract.model import Object, ObjectRef

POOL_NAME_LABEL: Final = "cluster.x-k8s.io/pool-name"
DELETE_MACHINE_ANNOTATION: Final = "cluster.x-k8s.io/delete-machine"
REPLICAS_MANAGED_BY_ANNOTATION: Final = "cluster.x-k8s.io/replicas-managed-by"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePool:
    """Read-only view of the MachinePool that owns an infrastructure machine pool."""

    name: str
    namespace: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    deleting: bool
    """Whether the MachinePool is being deleted."""
    cluster_name: str
    """Name of the Cluster that the MachinePool belongs to."""
    replicas: int
    """Desired number of machines, 1 if unset; the actual number if `replicas_managed_elsewhere`."""
    replicas_managed_elsewhere: bool
    """Whether an autoscaler outside Cluster API manages the number of machines (MP-17)."""
    version: str | None
    """The desired Kubernetes version, or None if not set."""
    failure_domains: tuple[str, ...]
    """The failure domains in which to create machines, or empty if all are allowed."""
    data_secret_name: str | None
    """Name of the Secret with the bootstrap data, or None until the data are available."""
    infrastructure: ObjectRef | None
    """Group, kind and name of the MachinePool's infrastructure machine pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMachine:
    """The fields of a pool's Machine that determine what the pool's controller does."""

    name: str
    deleting: bool
    delete_requested: bool
    """Whether to delete the machine first when the pool is scaled down (MP-10)."""
    unhealthy: bool
    """Whether a MachineHealthCheck has asked the Machine's owner to replace it."""
    has_node: bool
    """Whether the machine's Node exists."""


def read_machine_pool(obj: Object) -> MachinePool:
    """Return the MachinePool fields that providers use, read from the API object."""
    replicas = metadata.lookup(obj, "spec", "replicas")
    template = metadata.mapping(obj, "spec", "template", "spec")
    secret = metadata.lookup(template, "bootstrap", "dataSecretName")
    annotations = metadata.annotations(obj)
    return MachinePool(
        name=metadata.name(obj),
        namespace=metadata.namespace(obj),
        uid=metadata.uid(obj),
        labels=metadata.labels(obj),
        annotations=annotations,
        deleting=metadata.is_deleting(obj),
        cluster_name=metadata.text(obj, "spec", "clusterName"),
        replicas=max(0, replicas) if isinstance(replicas, int) else 1,
        replicas_managed_elsewhere=_managed_elsewhere(annotations),
        version=metadata.text(template, "version") or None,
        failure_domains=tuple(metadata.items(obj, "spec", "failureDomains")),
        data_secret_name=secret if isinstance(secret, str) and secret else None,
        infrastructure=_read_reference(metadata.mapping(template, "infrastructureRef")),
    )


def read_pool_machine(obj: Object) -> PoolMachine:
    """Return the Machine fields that its pool's controller uses."""
    found = metadata.items(obj, "status", "conditions")
    remediation = conditions.find(found, OWNER_REMEDIATED_CONDITION)
    return PoolMachine(
        name=metadata.name(obj),
        deleting=metadata.is_deleting(obj),
        delete_requested=DELETE_MACHINE_ANNOTATION in metadata.annotations(obj),
        unhealthy=remediation is not None and remediation.get("status") == "False",
        has_node=bool(metadata.text(obj, "status", "nodeRef", "name")),
    )


def owning_machine_pool(obj: Object) -> str | None:
    """Return the name of the MachinePool that owns an object, or None if there is none."""
    return metadata.owner_name(obj, MACHINE_POOL_KIND, CORE_GROUP)


def _managed_elsewhere(annotations: Mapping[str, str]) -> bool:
    return annotations.get(REPLICAS_MANAGED_BY_ANNOTATION, "false") != "false"


def _read_reference(reference: Object) -> ObjectRef | None:
    name = metadata.text(reference, "name")
    if not name:
        return None
    group = metadata.text(reference, "apiGroup")
    version = metadata.text(reference, "apiVersion")
    return ObjectRef(group or version.partition("/")[0], metadata.text(reference, "kind"), name)
