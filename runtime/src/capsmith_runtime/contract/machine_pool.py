"""MachinePools, the Machines that core creates for them, and the status of a provider's pools.

Of the fields read here, the versions of core differ only in the group of references.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.constants import CORE_GROUP, MACHINE_POOL_KIND
from capsmith_runtime.contract.model import Address, Object, ObjectRef
from capsmith_runtime.contract.status_writer import build_addresses, set_extra_fields, set_or_drop

POOL_NAME_LABEL: Final = "cluster.x-k8s.io/pool-name"
DELETE_MACHINE_ANNOTATION: Final = "cluster.x-k8s.io/delete-machine"
REPLICAS_MANAGED_BY_ANNOTATION: Final = "cluster.x-k8s.io/replicas-managed-by"
OWNER_REMEDIATED_CONDITION: Final = "OwnerRemediated"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePool:
    """The MachinePool of an infrastructure machine pool; read-only."""

    name: str
    namespace: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    deleting: bool
    """Whether it is being deleted."""
    cluster_name: str
    """Name of the Cluster that it belongs to."""
    replicas: int
    """Desired number of machines; the actual number while an autoscaler manages it."""
    replicas_managed_elsewhere: bool
    """Whether an autoscaler outside of Cluster API manages the number (MP-17)."""
    version: str | None
    """The desired Kubernetes version."""
    failure_domains: tuple[str, ...]
    """The failure domains in which to create machines; any if empty."""
    data_secret_name: str | None
    """None until bootstrap data are available."""
    infrastructure: ObjectRef | None
    """Group, kind and name of its infrastructure machine pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMachine:
    """The part of a Machine on which its pool acts."""

    name: str
    deleting: bool
    delete_requested: bool
    """Whether to delete it first when the pool is scaled down (MP-10)."""
    unhealthy: bool
    """Whether a MachineHealthCheck requests its replacement by the owner."""
    has_node: bool
    """Whether its Node exists."""


def read_machine_pool(obj: Object) -> MachinePool:
    """Return the view of a MachinePool."""
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
        replicas=replicas if isinstance(replicas, int) else 1,
        replicas_managed_elsewhere=_managed_elsewhere(annotations),
        version=metadata.text(template, "version") or None,
        failure_domains=tuple(metadata.items(obj, "spec", "failureDomains")),
        data_secret_name=secret if isinstance(secret, str) and secret else None,
        infrastructure=_read_reference(metadata.mapping(template, "infrastructureRef")),
    )


def read_pool_machine(obj: Object) -> PoolMachine:
    """Return a pool's view of a Machine."""
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
    """Return the name of the MachinePool that owns an object."""
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


MAX_INSTANCES: Final = 10_000
"""The CRD allows no longer lists (MP-03, MP-06)."""
MAX_BYTES: Final = 5 * 2**18
"""Limit of spec and status: etcd refuses objects of more than 1.5 MiB, metadata included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFacts:
    """One machine of a pool, for display (MP-06)."""

    name: str
    provider_id: str
    addresses: Sequence[Address]
    version: str | None
    ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """The observed state of a pool."""

    provisioned: bool
    """Whether the pool is provisioned; it stays so forever (MP-01, MP-02)."""
    provider_ids: Sequence[str]
    provider_id: str | None = None
    instances: Sequence[InstanceFacts] = ()
    machine_kind: str | None = None
    """The kind of the machines, if core creates Machines for them (MP-07)."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Status fields of the kind itself."""


class PoolStatusWriter(Protocol):
    """Write the status of a pool in the form of one contract version."""

    @property
    def contract(self) -> str:
        """``v1beta1`` or ``v1beta2``."""
        ...

    def provisioned(self, obj: Object) -> bool:
        """Return whether the status reports the pool as provisioned (MP-01, MP-02)."""
        ...

    def status(self, obj: Object, facts: PoolFacts, features: Set[str]) -> dict[str, Any]:
        """Return the whole status, without conditions."""
        ...


def drop_addresses(facts: PoolFacts) -> PoolFacts:
    """Return the facts without the addresses of machines, which are only for display (MP-06)."""
    instances = [replace(instance, addresses=()) for instance in facts.instances]
    return replace(facts, instances=instances)


def is_storable(spec: Object, status: Object) -> bool:
    """Return whether the API server can store an object with this spec and status."""
    if len(spec["providerIDList"]) > MAX_INSTANCES:
        return False
    parts = (json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in (spec, status))
    return sum(len(part.encode()) for part in parts) <= MAX_BYTES


def build_pool_spec(obj: Object, facts: PoolFacts, features: Set[str]) -> dict[str, Any]:
    """Return the spec with the sorted provider ids of all machines (MP-03, MP-05)."""
    spec = {**(obj.get("spec") or {}), "providerIDList": sorted(set(facts.provider_ids))}
    if "providerID" in features and facts.provider_id:
        spec["providerID"] = facts.provider_id
    return spec


def build_common_status(obj: Object, facts: PoolFacts, features: Set[str]) -> dict[str, Any]:
    """Return the status fields that are the same in all contracts (MP-01, MP-04, MP-06, MP-07).

    failureReason and failureMessage are never written: core panics on them (MP-13).
    """
    status = {**(obj.get("status") or {}), "replicas": len(set(facts.provider_ids))}
    if facts.provisioned:
        status["ready"] = True
    if "instances" in features:
        set_or_drop(status, "instances", [_instance(one) for one in _in_order(facts.instances)])
    if "machines" in features:
        set_or_drop(status, "infrastructureMachineKind", facts.machine_kind)
    return set_extra_fields(status, facts.extra)


def _in_order(instances: Sequence[InstanceFacts]) -> list[InstanceFacts]:
    return sorted(instances, key=lambda one: (one.name, one.provider_id))


def _instance(one: InstanceFacts) -> dict[str, Any]:
    entry: dict[str, Any] = {"ready": one.ready}
    set_or_drop(entry, "instanceName", one.name)
    set_or_drop(entry, "providerID", one.provider_id)
    set_or_drop(entry, "version", one.version)
    set_or_drop(entry, "addresses", build_addresses(one.addresses))
    return entry
