"""The next step of a control plane: scale up by one Machine, scale down by one, or do nothing.

Whatever happens between two decisions, the steps never lose the quorum, never make two changes
at a time, and end with the desired number of up-to-date Machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from capsmith_runtime.controlplane.preflight import check_scale_down, check_scale_up
from capsmith_runtime.controlplane.remediation import remediate
from capsmith_runtime.controlplane.scale_input import (
    Cause,
    Decision,
    MachineInput,
    ScaleDown,
    ScaleInput,
    ScaleUp,
    names,
)


def next_failure_domain(domains: Sequence[str], machines: Sequence[MachineInput]) -> str | None:
    """Return the domain with the fewest Machines that will stay, then with the fewest in total."""
    staying = Counter(m.domain for m in machines if m.up_to_date and not m.deleting)
    total = Counter(m.domain for m in machines)
    return min(domains, key=lambda name: (staying[name], total[name], name), default=None)


def machine_to_delete(
    domains: Sequence[str], machines: Sequence[MachineInput], eligible: Sequence[MachineInput]
) -> MachineInput:
    """Return the oldest in the fullest domain; Machines outside known domains come first."""
    misplaced = [m for m in eligible if domains and m.domain not in domains]
    if misplaced:
        return oldest(misplaced)
    total = Counter(m.domain for m in machines)
    fullest = max(total[m.domain] for m in eligible)
    return oldest([m for m in eligible if total[m.domain] == fullest])


def oldest(machines: Sequence[MachineInput]) -> MachineInput:
    """Return the Machine that was created first; by name among those of the same second."""
    return min(machines, key=lambda machine: (machine.created, machine.name))


_SCALE_IN_REPLICAS: Final = 3
"""The smallest control plane that keeps its quorum while one Machine is missing."""


def decide(scale_input: ScaleInput) -> Decision:
    """Remediate first, then roll out, then scale."""
    remediation = remediate(scale_input)
    if remediation.step is not None:
        return remediation
    decision = _roll_out_or_scale(scale_input)
    return Decision(decision.step, decision.blocked, remediation.remediation)


def _roll_out_or_scale(scale_input: ScaleInput) -> Decision:
    machines, replicas = scale_input.machines, scale_input.replicas
    outdated = [m for m in machines if not m.up_to_date and not m.deleting]
    limit = replicas + _surge(scale_input) if outdated else replicas
    if len(machines) < limit:
        return _scale_up(scale_input)
    if deleting := [m for m in machines if m.deleting]:
        complete = not outdated and len(machines) - len(deleting) >= replicas
        return Decision(blocked="" if complete else f"waits until {names(deleting)} is gone")
    if outdated:
        return _scale_down(scale_input, outdated, "rolling out")
    if len(machines) > replicas:
        return _scale_down(scale_input, (), "scaling down")
    return Decision()


def _surge(scale_input: ScaleInput) -> int:
    """Return the surge of a rollout; fewer than three Machines are not replaced without it."""
    return scale_input.max_surge if scale_input.replicas >= _SCALE_IN_REPLICAS else 1


def _scale_up(scale_input: ScaleInput) -> Decision:
    obstacle = check_scale_up(scale_input)
    if obstacle:
        return Decision(blocked=obstacle)
    domain = next_failure_domain(scale_input.domains, scale_input.machines)
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
    """Prefer what the user marked, then unhealthy Machines, then outdated ones, then any."""
    machines = scale_input.machines
    groups = (
        [m for m in outdated if m.delete_annotation],
        [m for m in machines if m.delete_annotation],
        [m for m in outdated if not m.healthy],
        list(outdated),
        [m for m in machines if not m.healthy],
        list(machines),
    )
    eligible = next(group for group in groups if group)
    return machine_to_delete(scale_input.domains, machines, eligible)
