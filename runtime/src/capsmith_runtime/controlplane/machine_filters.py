"""Filters on Machines: ownership, health, and what their annotations request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.control_plane import PRE_TERMINATE_PREFIX, ControlPlaneMachine
from capsmith_runtime.contract.model import Object

REMEDIATE_MACHINE: Final = "cluster.x-k8s.io/remediate-machine"
SKIP_REMEDIATION: Final = "cluster.x-k8s.io/skip-remediation"
DELETE_MACHINE: Final = "cluster.x-k8s.io/delete-machine"
HEALTH_CHECK_SUCCEEDED: Final = "HealthCheckSucceeded"
OWNER_REMEDIATED: Final = "OwnerRemediated"
NODE_HEALTHY: Final = "NodeHealthy"
UP_TO_DATE: Final = "UpToDate"


def is_owned(obj: Object, owner: Object) -> bool:
    """Report whether an object has that owner, by uid: names can be reused."""
    uid = metadata.uid(owner)
    return any(
        reference.get("uid") == uid
        for reference in metadata.items(obj, "metadata", "ownerReferences")
    )


def needs_remediation(machine: ControlPlaneMachine) -> bool:
    """Report whether the Machine has to be replaced (CP-31).

    Either a health check failed and left the replacement to the owner, or an annotation requests
    it.
    """
    if SKIP_REMEDIATION in machine.annotations:
        return False
    return REMEDIATE_MACHINE in machine.annotations or (
        machine.has_condition(HEALTH_CHECK_SUCCEEDED, "False")
        and machine.has_condition(OWNER_REMEDIATED, "False")
    )


def health_problem(machine: ControlPlaneMachine, reported: Mapping[str, str]) -> str:
    """Return what is wrong with a Machine; empty if nothing is.

    ``reported`` is what the ``health`` hook returned.
    """
    if machine.name in reported:
        return reported[machine.name]
    if machine.has_condition(HEALTH_CHECK_SUCCEEDED, "False"):
        return machine.conditions[HEALTH_CHECK_SUCCEEDED].message or "a health check has failed"
    node = machine.conditions.get(NODE_HEALTHY)
    if machine.node_name is not None and node is not None and node.status != "True":
        return node.message or "its Node is not healthy"
    return ""


def has_other_pre_terminate_hooks(machine: ControlPlaneMachine, own: str) -> bool:
    """Report whether others hold the Machine; they run first, as they need its server."""
    hooks = [name for name in machine.annotations if name.startswith(PRE_TERMINATE_PREFIX)]
    return any(name != own for name in hooks)
