"""Preflight checks: whether a Machine may be created or deleted now without risk to the quorum.

Each check returns the obstacle as a message, and an empty text if there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.controlplane.scale_input import MachineInput, ScaleInput, names


def quorum(machines: int) -> int:
    """Return how many of ``machines`` must be healthy for etcd to accept writes."""
    return machines // 2 + 1


def check_scale_up(scale_input: ScaleInput) -> str:
    """Report why no Machine may join now; the first one needs no other."""
    machines = scale_input.machines
    if not machines:
        return ""
    if not scale_input.initialized:
        return "waits until the API server responds"
    if deleting := [m for m in machines if m.deleting]:
        return f"waits until {names(deleting)} is gone"
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
    """Report why a Machine may not be deleted now; its own health does not matter."""
    if not scale_input.initialized:
        return "waits until the API server responds"
    return check_machines([m for m in scale_input.machines if m.name != machine.name])


def check_machines(machines: Sequence[MachineInput]) -> str:
    """Report Machines that have not joined, or are not healthy."""
    if joining := [m for m in machines if not m.joined]:
        return f"waits until {names(joining)} has joined"
    if unhealthy := [m for m in machines if not m.healthy]:
        return f"waits until {names(unhealthy)} is healthy"
    return ""
