"""State of a control plane, independent of the contract version that shapes its status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from capsmith_runtime.contract.control_plane_machine import MachineSettings
from capsmith_runtime.contract.model import Condition, Object, ObjectRef

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
"""Conditions that are normally False."""
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
    """Numbers of Machines; ready and available as reported by core (CP-07)."""

    desired: int
    current: int
    ready: int
    available: int
    nodes_ready: int
    """``readyReplicas`` of contract v1beta1."""
    up_to_date: int
    selector: str
    """Label selector of the Machines, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneFacts:
    """The observed state of a control plane."""

    initialized: bool
    """Whether the API server has ever answered; never reset (CP-02, CP-03)."""
    versions: Sequence[tuple[str, int]] = ()
    """Running versions with their number, the oldest first; 0 if not counted (CP-09)."""
    replicas: ReplicaFacts | None = None
    """None for a control plane without Machines."""
    externally_managed: bool = False
    """Whether the control plane has no Nodes (CP-25)."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """The kind's own status fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTemplate:
    """``spec.machineTemplate`` of a control plane (CP-11, CP-13)."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    infrastructure: ObjectRef
    settings: MachineSettings


class ControlPlaneShape(Protocol):
    """Reads and writes control planes in the shape of one contract version."""

    @property
    def contract(self) -> str:
        """``v1beta1`` or ``v1beta2``."""
        ...

    def initialized(self, obj: Object) -> bool:
        """Report whether the status says that the control plane is initialised."""
        ...

    def machine_template(self, obj: Object) -> MachineTemplate:
        """Return ``spec.machineTemplate``."""
        ...

    def status(self, obj: Object, facts: ControlPlaneFacts, features: Set[str]) -> dict[str, Any]:
        """Return the whole status without conditions; fields that are not in the facts are kept."""
        ...

    def conditions(self, conditions: Sequence[Condition]) -> Sequence[Condition]:
        """Return the conditions to write."""
        ...

    def absent(self, conditions: Sequence[Condition]) -> frozenset[str]:
        """Return the types of conditions to remove."""
        ...
