"""The next step of a control plane: create one Machine, delete one, or do nothing.

Whatever happens between two decisions, the steps never lose the quorum, never make two changes at a
time, and eventually lead to the desired number of up-to-date Machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from capsmith_runtime.contract.constants import REASON_WAITING_FOR_REMEDIATION

Cause = Literal["scaling down", "rolling out", "remediating"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInput:
    """The properties of a Machine that the decision depends on."""

    name: str
    created: str
    domain: str | None = None
    joined: bool = True
    """Whether the Machine has a Node and its ``after_add`` hook has completed."""
    had_node: bool = True
    """Whether the Machine has ever had a Node, which proves that an API server responded."""
    checks_passed: bool = True
    """Whether no hook, Node condition or health check reports a problem."""
    up_to_date: bool = True
    deleting: bool = False
    delete_annotation: bool = False
    """Whether the user wants this Machine to be deleted before others (``delete-machine``)."""
    needs_remediation: bool = False
    """Whether the Machine must be replaced (CP-31)."""
    remediate_annotation: bool = False
    """Whether an annotation requests the replacement, whatever the health checks report."""
    remediation_retry_after: str = ""
    """Reason why the replacement must wait because of earlier attempts, or empty if it need not."""

    @property
    def healthy(self) -> bool:
        """Return whether the control plane can rely on this Machine."""
        return self.joined and self.checks_passed and not self.deleting


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleInput:
    """Input for a decision about a control plane whose infrastructure and certificates exist."""

    replicas: int
    machines: Sequence[MachineInput]
    max_surge: int = 1
    """Maximum number of Machines above ``replicas`` during a rollout: 0 or 1."""
    domains: Sequence[str] = ()
    """Names of the failure domains for control plane machines."""
    initialized: bool = True
    remediation_in_progress: bool = False
    """Whether a Machine was deleted to be replaced and has no replacement yet."""


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """Decision to create a control plane Machine, in the failure domain ``domain`` if it is set."""

    domain: str | None


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """Decision to delete the control plane Machine ``name``, and the cause."""

    name: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class RemediationStatus:
    """The OwnerRemediated condition's content for a Machine that needs remediation."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The next step to take, or the reason to wait; never two steps at a time."""

    step: ScaleUp | ScaleDown | None = None
    blocked: str = ""
    """Reason why a due step cannot be taken yet, or an empty string if there is none."""
    remediation: Mapping[str, RemediationStatus] = field(default_factory=dict)
    """Status of the Machines that need remediation, keyed by name."""


def join_names(machines: Sequence[MachineInput]) -> str:
    """Return the Machines' names for a message, sorted so that the message does not change."""
    return ", ".join(sorted(machine.name for machine in machines))


def quorum(machines: int) -> int:
    """Return how many of the ``machines`` members must be healthy for etcd to accept writes."""
    return machines // 2 + 1


def check_scale_up(scale_input: ScaleInput) -> str:
    """Return the reason why no Machine may be added now, or an empty string if one may be added.

    The first Machine may always be added, because it depends on no other.
    """
    machines = scale_input.machines
    if not machines:
        return ""
    if not scale_input.initialized:
        return "waits until the API server responds"
    if deleting := [m for m in machines if m.deleting]:
        return f"waits until {join_names(deleting)} is gone"
    obstacle = check_machines(machines)
    if obstacle and scale_input.remediation_in_progress:
        # A damaged control plane is never all healthy: it is enough that one more member, should
        # it fail, cannot cost the quorum.
        healthy, needed = sum(m.healthy for m in machines), quorum(len(machines) + 1)
        if healthy >= needed:
            return ""
        return f"only {healthy} Machines are healthy, but {needed} must be"
    return obstacle


def check_scale_down(scale_input: ScaleInput, machine: MachineInput) -> str:
    """Return why ``machine`` may not be deleted now, or an empty string if it may be.

    The health of ``machine`` itself does not matter.
    """
    if not scale_input.initialized:
        return "waits until the API server responds"
    return check_machines([m for m in scale_input.machines if m.name != machine.name])


def check_machines(machines: Sequence[MachineInput]) -> str:
    """Return a message about Machines that are unhealthy or have not joined, or "" if none."""
    if joining := [m for m in machines if not m.joined]:
        return f"waits until {join_names(joining)} has joined"
    if unhealthy := [m for m in machines if not m.healthy]:
        return f"waits until {join_names(unhealthy)} is healthy"
    return ""


DEFERRED: Final = "RemediationDeferred"


CANNOT_BE_REMEDIATED: Final = "CannotBeRemediated"


MACHINE_DELETING: Final = "MachineDeleting"


def decide_remediation(scale_input: ScaleInput) -> Decision:
    """Return the deletion that is due, and the status of each Machine that needs remediation.

    Machines are replaced one at a time, and only if the other members keep their quorum or have
    none to lose.
    """
    unhealthy = [m for m in scale_input.machines if m.needs_remediation]
    if not unhealthy:
        return Decision()
    machine = min((m for m in unhealthy if not m.deleting), key=_priority, default=None)
    statuses = {m.name: _waiting(m, machine) for m in unhealthy}
    if machine is None:
        return Decision(remediation=statuses)
    obstacle = _obstacle(scale_input, machine)
    if obstacle is not None:
        return Decision(remediation={**statuses, machine.name: obstacle})
    statuses[machine.name] = RemediationStatus(MACHINE_DELETING, "Machine is deleting")
    return Decision(step=ScaleDown(machine.name, "remediating"), remediation=statuses)


def _priority(machine: MachineInput) -> tuple[bool, bool, bool, str, str]:
    """Return a sort key that puts the most broken Machine first.

    Replacing that Machine helps most and risks least.
    """
    return (
        not machine.remediate_annotation,
        machine.had_node,
        machine.checks_passed,
        machine.created,
        machine.name,
    )


def _waiting(machine: MachineInput, selected: MachineInput | None) -> RemediationStatus:
    if machine.deleting or selected is None:
        return RemediationStatus(MACHINE_DELETING, "Machine is deleting")
    message = f"waits until {selected.name} has been replaced"
    return RemediationStatus(REASON_WAITING_FOR_REMEDIATION, message)


def _obstacle(scale_input: ScaleInput, machine: MachineInput) -> RemediationStatus | None:
    """Return the reason why the Machine cannot be deleted now, or None if it can."""
    others = [m for m in scale_input.machines if m.name != machine.name]
    if scale_input.remediation_in_progress:
        return RemediationStatus(DEFERRED, "waits for the replacement of another Machine")
    if machine.remediation_retry_after:
        return RemediationStatus(DEFERRED, machine.remediation_retry_after)
    if deleting := [m for m in others if m.deleting]:
        return RemediationStatus(DEFERRED, f"waits until {join_names(deleting)} is gone")
    if not others:
        # After a move the status is lost, but a Machine that had a Node may hold all the data.
        if scale_input.initialized or machine.had_node:
            message = "this is the only Machine of the control plane"
            return RemediationStatus(CANNOT_BE_REMEDIATED, message)
        return None
    if not scale_input.initialized:
        return RemediationStatus(DEFERRED, "waits until the API server responds")
    # A Machine that is joining may soon add to the quorum; one that needs remediation itself never
    # will.
    if joining := [m for m in others if not m.joined and not m.needs_remediation]:
        return RemediationStatus(DEFERRED, f"waits until {join_names(joining)} has joined")
    # The deletion removes an etcd member, so the quorum is that of the remaining members.
    healthy, needed = sum(m.healthy for m in others), quorum(len(others))
    if healthy < needed:
        message = f"{healthy} of the {len(others)} others are healthy, but {needed} must be"
        return RemediationStatus(CANNOT_BE_REMEDIATED, message)
    return None


def choose_failure_domain(domains: Sequence[str], machines: Sequence[MachineInput]) -> str | None:
    """Return the domain with the fewest remaining Machines, or None if there are no domains.

    Machines that will be deleted do not count. In a tie, the domain with the fewest Machines in
    total wins, or else the first by name.
    """
    # Outdated Machines leave during the rollout: if they counted, the domains would be uneven after
    # it.
    staying = Counter(m.domain for m in machines if m.up_to_date and not m.deleting)
    total = Counter(m.domain for m in machines)
    return min(domains, key=lambda name: (staying[name], total[name], name), default=None)


def choose_machine_to_delete(
    domains: Sequence[str], machines: Sequence[MachineInput], eligible: Sequence[MachineInput]
) -> MachineInput:
    """Return the oldest ``eligible`` Machine in the domain with the most Machines.

    Machines in unknown domains come first.
    """
    # Failure domains that the cluster no longer has must become empty.
    misplaced = [m for m in eligible if domains and m.domain not in domains]
    if misplaced:
        return find_oldest(misplaced)
    total = Counter(m.domain for m in machines)
    fullest = max(total[m.domain] for m in eligible)
    return find_oldest([m for m in eligible if total[m.domain] == fullest])


def find_oldest(machines: Sequence[MachineInput]) -> MachineInput:
    """Return the Machine created first; among those created at the same time, the first by name."""
    return min(machines, key=lambda machine: (machine.created, machine.name))


_SCALE_IN_REPLICAS: Final = 3
"""Size of the smallest control plane that keeps its quorum while one Machine is missing."""


def decide(scale_input: ScaleInput) -> Decision:
    """Return the next step: remediation comes first, then rollout, then scaling.

    A broken Machine endangers the quorum, so its replacement precedes any other change.
    """
    remediation = decide_remediation(scale_input)
    if remediation.step is not None:
        return remediation
    decision = _roll_out_or_scale(scale_input)
    return Decision(decision.step, decision.blocked, remediation.remediation)


def _roll_out_or_scale(scale_input: ScaleInput) -> Decision:
    machines, replicas = scale_input.machines, scale_input.replicas
    outdated = [m for m in machines if not m.up_to_date and not m.deleting]
    limit = find_limit(replicas, scale_input.max_surge, is_rolling_out=bool(outdated))
    # Before anything is deleted: the control plane must not fall below the desired number.
    if len(machines) < limit:
        return _scale_up(scale_input)
    if deleting := [m for m in machines if m.deleting]:
        # If no step follows the deletion, the deletion blocks nothing and needs no message.
        complete = not outdated and len(machines) - len(deleting) >= replicas
        return Decision(blocked="" if complete else f"waits until {join_names(deleting)} is gone")
    if outdated:
        return _scale_down(scale_input, outdated, "rolling out")
    if len(machines) > replicas:
        return _scale_down(scale_input, (), "scaling down")
    return Decision()


def find_limit(replicas: int, max_surge: int, *, is_rolling_out: bool) -> int:
    """Return the number of Machines below which another one is created.

    During a rollout the new Machine joins before the old one leaves, if the surge allows it.
    Control planes with fewer than three Machines always need a surge.
    """
    if not is_rolling_out:
        return replicas
    return replicas + (max_surge if replicas >= _SCALE_IN_REPLICAS else 1)


def _scale_up(scale_input: ScaleInput) -> Decision:
    obstacle = check_scale_up(scale_input)
    if obstacle:
        return Decision(blocked=obstacle)
    domain = choose_failure_domain(scale_input.domains, scale_input.machines)
    return Decision(step=ScaleUp(domain))


def _scale_down(
    scale_input: ScaleInput, outdated: Sequence[MachineInput], cause: Cause
) -> Decision:
    machine = _select_for_scale_down(scale_input, outdated)
    obstacle = check_scale_down(scale_input, machine)
    if obstacle:
        return Decision(blocked=obstacle)
    return Decision(step=ScaleDown(machine.name, cause))


def _select_for_scale_down(
    scale_input: ScaleInput, outdated: Sequence[MachineInput]
) -> MachineInput:
    """Return the Machine to delete.

    Machines that the user marked come first, then unhealthy ones, then outdated ones, then any.
    """
    machines = scale_input.machines
    # Within each category outdated Machines come first, because their deletion also advances the
    # rollout.
    groups = (
        [m for m in outdated if m.delete_annotation],
        [m for m in machines if m.delete_annotation],
        [m for m in outdated if not m.healthy],
        list(outdated),
        [m for m in machines if not m.healthy],
        list(machines),
    )
    eligible = next(group for group in groups if group)
    return choose_machine_to_delete(scale_input.domains, machines, eligible)
