"""Conditions that the owner of Machines writes on them (CP-31, CP-32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capsmith_runtime.contract import times
from capsmith_runtime.contract.control_plane import ControlPlaneMachine
from capsmith_runtime.contract.model import Condition
from capsmith_runtime.controlplane.control_plane import ControlPlane
from capsmith_runtime.controlplane.machine_filters import (
    HEALTH_CHECK_SUCCEEDED,
    OWNER_REMEDIATED,
    UP_TO_DATE,
    needs_remediation,
)
from capsmith_runtime.controlplane.remediation import (
    CANNOT_BE_REMEDIATED,
    DEFERRED,
    MACHINE_DELETING,
    WAITING_FOR_REMEDIATION,
)
from capsmith_runtime.controlplane.scale_input import RemediationStatus
from capsmith_runtime.controlplane.summary import ReconcileSummary
from capsmith_runtime.controlplane.sync_machines import MachineSyncer
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.reconcile.caches import Caches

_OWN_REASONS: Final = frozenset(
    {CANNOT_BE_REMEDIATED, DEFERRED, MACHINE_DELETING, WAITING_FOR_REMEDIATION}
)


async def write_machine_conditions(
    caches: Caches,
    syncer: MachineSyncer,
    control_plane: ControlPlane,
    summary: ReconcileSummary,
) -> None:
    """Write the conditions that changed.

    Raises Conflict if core has changed a Machine since it was read.
    """
    for machine in control_plane.machines:
        present = [*_up_to_date(machine, summary.outdated)]
        present += _owner_remediated(machine, summary.decision.remediation)
        absent = [OWNER_REMEDIATED] if _is_remediation_over(machine) else []
        # Read again: this reconcile may have written the Machine.
        obj = caches.machines.get(NamespacedName(machine.namespace, machine.name))
        if obj is not None and (present or absent):
            now = times.format_time(control_plane.now)
            await syncer.write_conditions(obj, present, absent, now)


def _up_to_date(
    machine: ControlPlaneMachine, outdated: Mapping[str, tuple[str, ...]]
) -> tuple[Condition, ...]:
    if machine.name not in outdated:
        return ()
    reasons = outdated[machine.name]
    return (
        Condition(
            type=UP_TO_DATE,
            status=not reasons,
            reason="NotUpToDate" if reasons else UP_TO_DATE,
            message="\n".join(f"* {reason}" for reason in reasons),
        ),
    )


def _owner_remediated(
    machine: ControlPlaneMachine, statuses: Mapping[str, RemediationStatus]
) -> tuple[Condition, ...]:
    status = statuses.get(machine.name)
    if status is None:
        return ()
    return (
        Condition(
            type=OWNER_REMEDIATED, status=False, reason=status.reason, message=status.message
        ),
    )


def _is_remediation_over(machine: ControlPlaneMachine) -> bool:
    """Report whether the Machine has recovered, or its remediation is no longer requested."""
    condition = machine.conditions.get(OWNER_REMEDIATED)
    if condition is None or condition.status != "False":
        return False
    if machine.deleting or needs_remediation(machine):
        return False
    recovered = machine.has_condition(HEALTH_CHECK_SUCCEEDED, "True")
    return recovered or condition.reason in _OWN_REASONS
