"""Input and result of the scaling decision of a control plane: plain values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Cause = Literal["scaling down", "rolling out", "remediating"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInput:
    """The properties of one Machine on which the decision depends."""

    name: str
    created: str
    domain: str | None = None
    joined: bool = True
    """It has a Node, and its ``after_add`` hook has completed."""
    had_node: bool = True
    """It has had a Node at some time: an API server has answered."""
    checks_passed: bool = True
    """Neither a hook, nor its Node, nor a health check reports a problem."""
    up_to_date: bool = True
    deleting: bool = False
    delete_annotation: bool = False
    """The user prefers that this one is deleted first (``delete-machine``)."""
    needs_remediation: bool = False
    """It has to be replaced (CP-31)."""
    remediate_annotation: bool = False
    """Remediation was requested by annotation, whatever health checks report."""
    remediation_retry_after: str = ""
    """Why it must not be replaced yet, given earlier attempts; empty if it may be."""

    @property
    def healthy(self) -> bool:
        """Whether the control plane can rely on it."""
        return self.joined and self.checks_passed and not self.deleting


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleInput:
    """A control plane whose cluster has its infrastructure and certificates."""

    replicas: int
    machines: Sequence[MachineInput]
    max_surge: int = 1
    """How many Machines there may be above ``replicas`` during a rollout: 0 or 1."""
    domains: Sequence[str] = ()
    """Names of the failure domains for control planes."""
    initialized: bool = True
    remediation_in_progress: bool = False
    """A Machine was deleted in order to be replaced; its replacement does not exist yet."""


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """Create one Machine."""

    domain: str | None


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """Delete one Machine."""

    name: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class RemediationStatus:
    """Content of the OwnerRemediated condition of a Machine that needs remediation."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The next step, or the reason to wait; never two steps at a time."""

    step: ScaleUp | ScaleDown | None = None
    blocked: str = ""
    """Why a step that is due cannot be taken yet."""
    remediation: Mapping[str, RemediationStatus] = field(default_factory=dict)
    """Status of Machines that need remediation, by name."""


def names(machines: Sequence[MachineInput]) -> str:
    """Return the names in a stable order, for messages."""
    return ", ".join(sorted(machine.name for machine in machines))
