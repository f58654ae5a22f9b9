"""Remediation: which unhealthy Machine is replaced now, and why others have to wait (CP-31)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from capsmith_runtime.contract import metadata, times
from capsmith_runtime.contract.control_plane import ControlPlaneMachine
from capsmith_runtime.contract.model import Object
from capsmith_runtime.controlplane.annotations import RemediationData, read_remediation_data
from capsmith_runtime.controlplane.preflight import quorum
from capsmith_runtime.controlplane.scale_input import (
    Decision,
    MachineInput,
    RemediationStatus,
    ScaleDown,
    ScaleInput,
    names,
)

DEFERRED: Final = "RemediationDeferred"
CANNOT_BE_REMEDIATED: Final = "CannotBeRemediated"
MACHINE_DELETING: Final = "MachineDeleting"
WAITING_FOR_REMEDIATION: Final = "WaitingForRemediation"

MIN_HEALTHY_SECONDS: Final = 3600
"""A replacement that was healthy for that long does not count as a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationStrategy:
    """The settings in ``spec.remediation``."""

    max_retry: int | None = None
    """Unlimited if None."""
    retry_period_seconds: int = 0
    min_healthy_seconds: int = MIN_HEALTHY_SECONDS


@dataclass(frozen=True, slots=True)
class RemediationDelay:
    """The reason for which a Machine must not be replaced yet, and the seconds left."""

    message: str = ""
    seconds: float | None = None


def remediate(scale_input: ScaleInput) -> Decision:
    """Return the deletion that is due, and the status of each Machine that needs remediation.

    Machines are replaced one at a time, and only if the others keep their quorum (or have none
    to lose).
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


def remediation_strategy(obj: Object) -> RemediationStrategy:
    """Return the settings in the spec of a control plane."""
    spec = metadata.mapping(obj, "spec", "remediation")
    min_healthy = _integer(spec, "minHealthyPeriodSeconds")
    return RemediationStrategy(
        max_retry=_integer(spec, "maxRetry"),
        retry_period_seconds=_integer(spec, "retryPeriodSeconds") or 0,
        min_healthy_seconds=MIN_HEALTHY_SECONDS if min_healthy is None else min_healthy,
    )


def remediation_retry_after(
    machine: ControlPlaneMachine, annotation: str, strategy: RemediationStrategy, now: datetime
) -> RemediationDelay:
    """Report whether replacing the Machine has to wait, or has reached its limit."""
    last = _last_remediation(machine, annotation, strategy, now)
    if last is None:
        return RemediationDelay()
    if strategy.max_retry is not None and last.retries >= strategy.max_retry:
        return RemediationDelay(
            f"was replaced {last.retries} times without success, spec.remediation.maxRetry"
        )
    elapsed = (now - (times.parse_time(last.time) or now)).total_seconds()
    period = strategy.retry_period_seconds
    if elapsed < period:
        message = f"replaced {last.machine} less than {period} s ago"
        return RemediationDelay(message, period - elapsed)
    return RemediationDelay()


def next_remediation(
    machine: ControlPlaneMachine, annotation: str, strategy: RemediationStrategy, now: datetime
) -> RemediationData:
    """Return the data of a remediation that starts now."""
    last = _last_remediation(machine, annotation, strategy, now)
    retries = 0 if last is None else last.retries + 1
    return RemediationData(machine=machine.name, time=times.format_time(now), retries=retries)


def _last_remediation(
    machine: ControlPlaneMachine, annotation: str, strategy: RemediationStrategy, now: datetime
) -> RemediationData | None:
    """Return the remediation that created it; None if it has been healthy long enough since."""
    last = read_remediation_data(machine.annotations, annotation)
    since = times.parse_time(last.time) if last is not None else None
    if since is None or since + timedelta(seconds=strategy.min_healthy_seconds) <= now:
        return None
    return last


def _priority(machine: MachineInput) -> tuple[bool, bool, bool, str, str]:
    """Sort the most broken first: replacing it helps most, and risks least."""
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
    return RemediationStatus(WAITING_FOR_REMEDIATION, message)


def _obstacle(scale_input: ScaleInput, machine: MachineInput) -> RemediationStatus | None:
    """Return why the Machine cannot be deleted now; None if it can."""
    others = [m for m in scale_input.machines if m.name != machine.name]
    if scale_input.remediation_in_progress:
        return RemediationStatus(DEFERRED, "waits for the replacement of another Machine")
    if machine.remediation_retry_after:
        return RemediationStatus(DEFERRED, machine.remediation_retry_after)
    if deleting := [m for m in others if m.deleting]:
        return RemediationStatus(DEFERRED, f"waits until {names(deleting)} is gone")
    if not others:
        # After a move the status is lost, but a Machine that had a Node may hold all the data.
        if scale_input.initialized or machine.had_node:
            message = "this is the only Machine of the control plane"
            return RemediationStatus(CANNOT_BE_REMEDIATED, message)
        return None
    if not scale_input.initialized:
        return RemediationStatus(DEFERRED, "waits until the API server responds")
    if joining := [m for m in others if not m.joined and not m.needs_remediation]:
        return RemediationStatus(DEFERRED, f"waits until {names(joining)} has joined")
    healthy, needed = sum(m.healthy for m in others), quorum(len(others))
    if healthy < needed:
        message = f"{healthy} of the {len(others)} others are healthy, but {needed} must be"
        return RemediationStatus(CANNOT_BE_REMEDIATED, message)
    return None


def _integer(spec: Mapping[str, object], name: str) -> int | None:
    value = spec.get(name)
    return value if isinstance(value, int) else None
