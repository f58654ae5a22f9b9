"""Control planes and their Machines, independent of the core and contract versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CONTROL_PLANE_LABEL, CORE_GROUP, MACHINE_KIND
from capsmith_runtime.contract.model import ADDRESS_TYPES, Address, Condition, Object, ObjectRef

PRE_TERMINATE_PREFIX: Final = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/"
WAITING_FOR_PRE_TERMINATE: Final = "WaitingForPreTerminateHook"
DEFAULT_DELETION_SECONDS: Final = 10
"""Default time limit for deleting a Node in seconds, the same as in core's webhook."""


@dataclass(frozen=True, slots=True)
class MachineCondition:
    """A condition of a Machine, without its transition time."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneMachine:
    """Read-only view of a control plane Machine."""

    name: str
    namespace: str
    uid: str
    created: str
    """Creation timestamp in RFC 3339."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    deleted: str | None
    """Deletion timestamp in RFC 3339, or None if the Machine is not being deleted."""
    version: str | None
    """The Kubernetes version that the Machine was created with, or None if it has none."""
    failure_domain: str | None
    """The failure domain in which the Machine is created, or None if it may be created in any."""
    provider_id: str | None
    """The Machine's provider id, or None until its infrastructure is provisioned."""
    node_name: str | None
    """Name of the Machine's Node, or None until core has found it."""
    addresses: tuple[Address, ...]
    """The addresses in the Machine's status."""
    infrastructure: ObjectRef | None
    """Group, kind and name of the Machine's infrastructure machine."""
    bootstrap: ObjectRef | None
    """Group, kind and name of the Machine's bootstrap configuration."""
    certificates_expiry: str | None
    """Time at which the Machine's certificates expire, in RFC 3339, or None if unknown."""
    conditions: Mapping[str, MachineCondition]
    """Status, reason and message of each condition, keyed by condition type."""
    kubelet_version: str | None = None
    """The version that the Machine's Node reports, or None until core has found the Node."""

    @property
    def running_version(self) -> str | None:
        """Return the Machine's version or, if it has none, that of its Node."""
        return self.version or self.kubelet_version

    @property
    def deleting(self) -> bool:
        """Return whether the Machine is being deleted."""
        return self.deleted is not None

    def has_condition(self, condition_type: str, status: str) -> bool:
        """Return whether the condition of type ``condition_type`` has this status."""
        condition = self.conditions.get(condition_type)
        return condition is not None and condition.status == status

    says = has_condition
    """Name of ``has_condition`` in capsmith 0.1, kept for existing reconcilers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    """Fields of a Machine that its owner updates in place, without a rollout (CP-20)."""

    drain_seconds: int | None = None
    volume_detach_seconds: int | None = None
    deletion_seconds: int | None = None
    readiness_gates: Sequence[Object] = ()
    taints: Sequence[Object] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDraft:
    """A Machine that is about to be created (CP-19)."""

    metadata: Mapping[str, Any]
    cluster_name: str
    version: str
    failure_domain: str | None
    infrastructure: Object
    """The infrastructure machine that the Machine references."""
    bootstrap: Object
    settings: MachineSettings = field(default_factory=MachineSettings)


class CoreMachines(Protocol):
    """Protocol for reading and building Machines in one version of cluster.x-k8s.io."""

    @property
    def version(self) -> str:
        """Return the version of cluster.x-k8s.io: ``v1beta1`` or ``v1beta2``."""
        ...

    def read(self, obj: Object) -> ControlPlaneMachine:
        """Return the control plane Machine fields that providers use."""
        ...

    def read_failure_domains(self, cluster: Object) -> tuple[str, ...]:
        """Return the names of the Cluster's failure domains for control planes, sorted (CP-24)."""
        ...

    def build(self, draft: MachineDraft) -> dict[str, Any]:
        """Create the manifest of a Machine from a draft."""
        ...

    def build_spec(self, obj: Object, settings: MachineSettings) -> dict[str, Any]:
        """Return a Machine's complete spec with ``settings`` applied and other fields unchanged."""
        ...

    def build_status(
        self, obj: Object, present: Sequence[Condition], absent: Iterable[str], now: str
    ) -> dict[str, Any]:
        """Return a Machine's complete status, with some conditions set and others removed.

        ``present`` are the conditions to set, ``absent`` the types to remove; ``now`` is a time in
        RFC 3339.
        """
        ...


def read_control_plane_machine(
    obj: Object,
    *,
    infrastructure: ObjectRef | None,
    bootstrap: ObjectRef | None,
    conditions: Sequence[Object],
) -> ControlPlaneMachine:
    """Return a view of a Machine.

    The keyword arguments are the fields that are read differently in each core version.
    """
    return ControlPlaneMachine(
        name=metadata.name(obj),
        namespace=metadata.namespace(obj),
        uid=metadata.uid(obj),
        created=metadata.text(obj, "metadata", "creationTimestamp"),
        labels=metadata.labels(obj),
        annotations=metadata.annotations(obj),
        deleted=metadata.text(obj, "metadata", "deletionTimestamp") or None,
        version=metadata.text(obj, "spec", "version") or None,
        failure_domain=metadata.text(obj, "spec", "failureDomain") or None,
        provider_id=metadata.text(obj, "spec", "providerID") or None,
        node_name=metadata.text(obj, "status", "nodeRef", "name") or None,
        addresses=tuple(_addresses(obj)),
        infrastructure=infrastructure,
        bootstrap=bootstrap,
        certificates_expiry=metadata.text(obj, "status", "certificatesExpiryDate") or None,
        conditions={
            metadata.text(entry, "type"): MachineCondition(
                metadata.text(entry, "status"),
                metadata.text(entry, "reason"),
                metadata.text(entry, "message"),
            )
            for entry in conditions
        },
        kubelet_version=metadata.text(obj, "status", "nodeInfo", "kubeletVersion") or None,
    )


def is_control_plane(obj: Object) -> bool:
    """Return whether a Machine has the control plane label (CP-19)."""
    return CONTROL_PLANE_LABEL in metadata.labels(obj)


def is_waiting_for_pre_terminate(machine: ControlPlaneMachine) -> bool:
    """Return whether only pre-terminate hooks delay a Machine's deletion (SM-05)."""
    condition = machine.conditions.get("Deleting")
    return condition is not None and condition.reason == WAITING_FOR_PRE_TERMINATE


def build_machine(
    draft: MachineDraft, *, version: str, bootstrap: Object, infrastructure: Object
) -> dict[str, Any]:
    """Create the manifest of a Machine from a draft, without its settings.

    The caller passes the references, whose format depends on core's version.
    """
    spec: dict[str, Any] = {
        "clusterName": draft.cluster_name,
        "bootstrap": {"configRef": bootstrap},
        "infrastructureRef": infrastructure,
    }
    set_or_remove(spec, "version", draft.version or None)
    set_or_remove(spec, "failureDomain", draft.failure_domain)
    return {
        "apiVersion": f"{CORE_GROUP}/{version}",
        "kind": MACHINE_KIND,
        "metadata": dict(draft.metadata),
        "spec": spec,
    }


def set_or_remove(obj: dict[str, Any], name: str, value: Any) -> None:
    """Set ``obj[name]``, or remove it if ``value`` is None or an empty list."""
    if value is None or value == []:
        obj.pop(name, None)
    else:
        obj[name] = value


def _addresses(obj: Object) -> Iterable[Address]:
    for entry in metadata.items(obj, "status", "addresses"):
        kind, address = entry.get("type"), entry.get("address")
        if kind in ADDRESS_TYPES and isinstance(address, str) and 1 <= len(address) <= 256:
            yield Address(kind, address)


AVAILABLE: Final = "Available"
INITIALIZED: Final = "Initialized"
CERTIFICATES_AVAILABLE: Final = "CertificatesAvailable"
HEALTHY: Final = "Healthy"
MACHINES_READY: Final = "MachinesReady"
MACHINES_UP_TO_DATE: Final = "MachinesUpToDate"
ROLLING_OUT: Final = "RollingOut"
SCALING_UP: Final = "ScalingUp"
SCALING_DOWN: Final = "ScalingDown"
REMEDIATING: Final = "Remediating"
DELETING: Final = "Deleting"

NEGATIVE: Final = frozenset({ROLLING_OUT, SCALING_UP, SCALING_DOWN, REMEDIATING, DELETING})
"""Types of the conditions with negative polarity, which are False in normal operation."""
OWN_CONDITIONS: Final = NEGATIVE | {
    AVAILABLE,
    INITIALIZED,
    CERTIFICATES_AVAILABLE,
    HEALTHY,
    MACHINES_READY,
    MACHINES_UP_TO_DATE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """Counts of Machines; core decides which Machines are ready and available (CP-07)."""

    desired: int
    current: int
    ready: int
    available: int
    nodes_ready: int
    """Number of Machines with a ready Node: ``readyReplicas`` in contract v1beta1."""
    up_to_date: int
    selector: str
    """The Machines' label selector, as a string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneFacts:
    """What a reconcile learned about a control plane, for the control plane's status."""

    initialized: bool
    """Whether the API server has ever responded; once true, never reset (CP-02, CP-03)."""
    versions: Sequence[tuple[str, int]] = ()
    """Running versions with their number of Nodes, oldest version first.

    The number is 0 if it is unknown (CP-09).
    """
    replicas: ReplicaFacts | None = None
    """Counts of the control plane's Machines, or None for a control plane without Machines."""
    externally_managed: bool = False
    """Whether the control plane has no Nodes (CP-25)."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Status fields that only this kind has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTemplate:
    """Content of a control plane's ``spec.machineTemplate`` (CP-11, CP-13)."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    infrastructure: ObjectRef
    settings: MachineSettings


class ControlPlaneShape(Protocol):
    """Reads and writes control planes in one contract version's format."""

    @property
    def contract(self) -> str:
        """Return the contract version: ``v1beta1`` or ``v1beta2``."""
        ...

    def is_initialized(self, obj: Object) -> bool:
        """Return whether the status reports the control plane as initialised."""
        ...

    def read_machine_template(self, obj: Object) -> MachineTemplate:
        """Return the content of a control plane's ``spec.machineTemplate``."""
        ...

    def build_status(
        self, obj: Object, facts: ControlPlaneFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the complete status with ``facts``; conditions and other fields are unchanged."""
        ...

    def select_conditions(self, conditions: Sequence[Condition]) -> Sequence[Condition]:
        """Return the conditions to write in this contract version, given all ``conditions``."""
        ...

    def find_obsolete_conditions(self, conditions: Sequence[Condition]) -> frozenset[str]:
        """Return the types among ``conditions`` that must be removed in this contract version."""
        ...
