"""Status of a control plane: replica counts, versions and conditions (CP-02 to CP-07, CP-26)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.control_plane import (
    AVAILABLE,
    CERTIFICATES_AVAILABLE,
    DELETING,
    HEALTHY,
    INITIALIZED,
    MACHINES_READY,
    MACHINES_UP_TO_DATE,
    REMEDIATING,
    ROLLING_OUT,
    SCALING_DOWN,
    SCALING_UP,
    ControlPlaneFacts,
    ControlPlaneMachine,
    ReplicaFacts,
)
from capsmith_runtime.contract.kubernetes_version import count_versions
from capsmith_runtime.contract.model import Condition, Severity
from capsmith_runtime.controlplane.control_plane import (
    NODE_HEALTHY,
    UP_TO_DATE,
    ControlPlane,
    ReconcileSummary,
    TerminalHookCallError,
    find_health_problem,
    needs_remediation,
)
from capsmith_runtime.controlplane.desired_machine import CONTROL_PLANE_NAME_LABEL
from capsmith_runtime.controlplane.scale_decision import quorum

READY = "Ready"


def build_facts(control_plane: ControlPlane, summary: ReconcileSummary) -> ControlPlaneFacts:
    """Return the facts that the status reports, except the conditions."""
    machines = control_plane.machines
    # A version counts as running from the first Node with it until the Machine is gone.
    running = (m.running_version for m in machines if m.node_name is not None)
    return ControlPlaneFacts(
        initialized=summary.initialized,
        versions=count_versions(version for version in running if version is not None),
        replicas=ReplicaFacts(
            desired=control_plane.replicas,
            current=len(machines),
            ready=_count(machines, READY),
            available=_count(machines, AVAILABLE),
            nodes_ready=_count(machines, NODE_HEALTHY),
            up_to_date=sum(_is_up_to_date(m, summary) for m in machines),
            selector=build_selector(control_plane),
        ),
        extra=encode_status(_own_status(summary)),
    )


def _own_status(summary: ReconcileSummary) -> object:
    """Return the author's status fields, from a terminal error if there is one."""
    error = summary.error
    return error.status if isinstance(error, TerminalHookCallError) else summary.health.status


def build_selector(control_plane: ControlPlane) -> str:
    """Return the label selector for the Machines that ``status.replicas`` counts (CP-04)."""
    labels = control_plane.desired.labels
    names = (constants.CLUSTER_NAME_LABEL, CONTROL_PLANE_NAME_LABEL)
    return ",".join((constants.CONTROL_PLANE_LABEL, *(f"{n}={labels[n]}" for n in names)))


def build_conditions(control_plane: ControlPlane, summary: ReconcileSummary) -> Sequence[Condition]:
    """Return all conditions; the same state gives the same messages (ST-06)."""
    return (
        _available(control_plane, summary),
        _initialized(summary),
        _certificates(summary),
        _healthy(control_plane, summary),
        _aggregate(MACHINES_READY, READY, control_plane.machines, "NotReady"),
        _machines_up_to_date(control_plane, summary),
        *_progress(control_plane, summary),
        _remediating(control_plane, summary),
        _deleting(control_plane, summary),
        *summary.health.conditions,
    )


def _available(control_plane: ControlPlane, summary: ReconcileSummary) -> Condition:
    """Return Available: the control plane is initialised and has its quorum (CP-26)."""
    if not summary.initialized:
        reasons = "; ".join(w.message for w in summary.waits if w.message)
        return _false(AVAILABLE, reasons or "Control plane not yet initialized", "Info")
    # A Machine without a Node has not joined etcd yet and does not count for the quorum.
    members = [m for m in control_plane.machines if m.node_name is not None]
    healthy = [m for m in members if not find_health_problem(m, summary.health.unhealthy)]
    needed = quorum(len(members))
    complete = len(healthy) == len(members)
    message = "" if complete else f"{len(healthy)} of {len(members)} are healthy"
    if members and len(healthy) < needed:
        return _false(AVAILABLE, f"{message}, but {needed} must be", "Error")
    if metadata.is_deleting(control_plane.obj):
        return _false(AVAILABLE, "Control plane is being deleted", "Info")
    return Condition(type=AVAILABLE, status=True, reason=AVAILABLE, message=message)


def _initialized(summary: ReconcileSummary) -> Condition:
    if summary.initialized:
        return Condition(type=INITIALIZED, status=True, reason=INITIALIZED)
    return _false(INITIALIZED, "", "Info")


def _certificates(summary: ReconcileSummary) -> Condition:
    waiting = summary.certificates
    if waiting is None:
        return Condition(
            type=CERTIFICATES_AVAILABLE,
            status=True,
            reason=AVAILABLE,
            message=summary.certificates_message,
        )
    return Condition(
        type=CERTIFICATES_AVAILABLE,
        status=False,
        reason=waiting.reason,
        message=waiting.message,
    )


def _healthy(control_plane: ControlPlane, summary: ReconcileSummary) -> Condition:
    if summary.error is not None:
        reason, message = summary.error.reason, summary.error.message
        # Unknown rather than False, because a failed hook reveals nothing about the Machines.
        return Condition(type=HEALTHY, status=None, reason=reason, message=message)
    reported: Mapping[str, str] = summary.health.unhealthy
    problems = {m.name: find_health_problem(m, reported) for m in control_plane.machines}
    lines = [f"* Machine {name}: {text}" for name, text in sorted(problems.items()) if text]
    if lines:
        return _false(HEALTHY, "\n".join(lines))
    return Condition(type=HEALTHY, status=True, reason=HEALTHY)


def _aggregate(
    condition_type: str, source: str, machines: Iterable[ControlPlaneMachine], reason: str
) -> Condition:
    """Aggregate one condition of all Machines into a condition of the control plane.

    ``source`` is the type of the Machines' condition.
    """
    lines = [
        f"* Machine {m.name}: "
        f"{m.conditions[source].message if source in m.conditions else 'not reported'}"
        for m in sorted(machines, key=lambda m: m.name)
        if not m.has_condition(source, "True")
    ]
    if lines:
        message = "\n".join(lines)
        return Condition(type=condition_type, status=False, reason=reason, message=message)
    return Condition(type=condition_type, status=True, reason=source)


def _machines_up_to_date(control_plane: ControlPlane, summary: ReconcileSummary) -> Condition:
    outdated = _outdated(control_plane, summary)
    if outdated:
        return Condition(
            type=MACHINES_UP_TO_DATE,
            status=False,
            reason="NotUpToDate",
            message="\n".join(f"* Machine {name}: {why}" for name, why in outdated),
            severity="Info",
        )
    return Condition(type=MACHINES_UP_TO_DATE, status=True, reason=UP_TO_DATE)


def _progress(control_plane: ControlPlane, summary: ReconcileSummary) -> Iterable[Condition]:
    """Yield the conditions of operations in progress, with their obstacles."""
    current = len(control_plane.machines)
    desired = 0 if metadata.is_deleting(control_plane.obj) else control_plane.replicas
    outdated = _outdated(control_plane, summary)
    rollout = f"Rolling out {len(outdated)} not up-to-date replicas" if outdated else ""
    up = f"Scaling up from {current} to {desired} replicas" if current < desired else ""
    down = f"Scaling down from {current} to {desired} replicas" if current > desired else ""
    blocked = _blocked(control_plane, summary)
    foreign = _describe_foreign_machines(control_plane, summary)
    for condition_type, text in ((ROLLING_OUT, rollout), (SCALING_UP, up), (SCALING_DOWN, down)):
        if not text:
            idle = _inactive(condition_type)
            # Nothing else shows these Machines while their control plane has all of its own.
            if foreign and condition_type == SCALING_UP:
                lines = (f"* {each}" for each in foreign)
                message = "\n".join(("Scaling up would be blocked because:", *lines))
                idle = replace(idle, message=message)
            yield idle
            continue
        message = f"{text} is blocked because:\n{blocked}" if blocked else text
        yield Condition(type=condition_type, status=True, reason=condition_type, message=message)


def _blocked(control_plane: ControlPlane, summary: ReconcileSummary) -> str:
    reasons = [waiting.message for waiting in summary.waits if waiting.message]
    if summary.decision.blocked:
        reasons.append(summary.decision.blocked)
    reasons += _describe_foreign_machines(control_plane, summary)
    # Several steps can report one obstacle.  A dict keeps their order, so that the message is
    # stable.
    return "\n".join(f"* {text}" for text in dict.fromkeys(reasons))


def _describe_foreign_machines(
    control_plane: ControlPlane, summary: ReconcileSummary
) -> Sequence[str]:
    """Return sentences about the Machines that block scaling because they are not owned."""
    foreign = control_plane.foreign_machines
    # They do not block the deletion, during which none is adopted.
    if not foreign or metadata.is_deleting(control_plane.obj):
        return ()
    text = f"Machines without this owner are in this control plane: {foreign}"
    return (text, *(summary.not_adopted[name] for name in foreign if name in summary.not_adopted))


def _remediating(control_plane: ControlPlane, summary: ReconcileSummary) -> Condition:
    unhealthy = sorted(m.name for m in control_plane.machines if needs_remediation(m))
    if not unhealthy:
        return _inactive(REMEDIATING)
    statuses = summary.decision.remediation
    lines = [
        f"* Machine {name}: {statuses[name].message}" for name in unhealthy if name in statuses
    ]
    return Condition(type=REMEDIATING, status=True, reason=REMEDIATING, message="\n".join(lines))


def _deleting(control_plane: ControlPlane, summary: ReconcileSummary) -> Condition:
    if not metadata.is_deleting(control_plane.obj):
        return _inactive(DELETING)
    message = _blocked(control_plane, summary)
    return Condition(type=DELETING, status=True, reason=DELETING, message=message)


def _outdated(control_plane: ControlPlane, summary: ReconcileSummary) -> list[tuple[str, str]]:
    reasons = ((m.name, summary.outdated.get(m.name, ())) for m in control_plane.machines)
    return sorted((name, ", ".join(texts)) for name, texts in reasons if texts)


def _is_up_to_date(machine: ControlPlaneMachine, summary: ReconcileSummary) -> bool:
    if machine.name in summary.outdated:
        return not summary.outdated[machine.name]
    # A reconcile that ended early has not compared this Machine, so its last result counts.
    return machine.has_condition(UP_TO_DATE, "True")


def _count(machines: Sequence[ControlPlaneMachine], condition_type: str) -> int:
    return sum(machine.has_condition(condition_type, "True") for machine in machines)


def _false(condition_type: str, message: str, severity: Severity = "Warning") -> Condition:
    return Condition(
        type=condition_type,
        status=False,
        reason=f"Not{condition_type}",
        message=message,
        severity=severity,
    )


def _inactive(condition_type: str) -> Condition:
    return Condition(
        type=condition_type, status=False, reason=f"Not{condition_type}", severity="Info"
    )
