"""Failure domains: where the next Machine is created, and where one is deleted (CP-24)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from capsmith_runtime.controlplane.scale_input import MachineInput


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
