"""Summarize an object: its state in a few words, and what it is waiting for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.clusters.conditions import (
    JSON,
    ObjectCondition,
    get_mapping,
    get_sequence,
    list_conditions,
    select_current,
)
from capsmith.clusters.hiding import hide_in_line
from capsmith.clusters.lab.objects import find_blocker

_PAUSED_ANNOTATION = "cluster.x-k8s.io/paused"
_DONE_PHASES = {"Provisioned", "Running"}
_FAILED_PHASES = {"Failed", "Unknown"}
OK, WAITING, FAILED, DELETING, NEUTRAL = "ok", "waiting", "failed", "deleting", "neutral"


@dataclass(frozen=True)
class Summary:
    """An object's state in a few words, and the condition that blocks it."""

    state: str
    tone: str
    """``ok``, ``waiting``, ``failed``, ``deleting`` or ``neutral``."""
    waiting: str
    """What the object is waiting for, or what has failed if the tone is ``failed``.

    Secrets are hidden.  It is empty if nothing blocks the object.
    """
    is_paused: bool


def summarize(obj: Mapping[str, Any]) -> Summary:
    """Return a summary for an object of any kind."""
    conditions = select_current(list_conditions(obj))
    paused = _is_paused(obj, conditions)
    if get_mapping(obj.get("metadata")).get("deletionTimestamp"):
        waiting = hide_in_line(_describe_deletion(obj, conditions))
        return Summary("Deleting", DELETING, waiting, paused)
    state, tone = _judge(obj, conditions)
    if tone in (OK, NEUTRAL):
        return Summary(state, tone, "", paused)
    blocker = find_blocker(_with(conditions))
    waiting = blocker.text if blocker else _describe_missing(obj)
    tone = FAILED if blocker and blocker.is_error else tone
    return Summary(state, tone, hide_in_line(waiting), paused)


def _judge(obj: Mapping[str, Any], conditions: list[ObjectCondition]) -> tuple[str, str]:
    """Return state and tone, from the fields that the kind's role in the contract has."""
    spec, status = get_mapping(obj.get("spec")), get_mapping(obj.get("status"))
    # Deployments and pools also have a phase, but it says less.
    if isinstance(spec.get("replicas"), int):
        ready = status.get("readyReplicas") or 0
        return f"{ready} of {spec['replicas']} ready", OK if ready == spec["replicas"] else WAITING
    phase = status.get("phase")
    if isinstance(phase, str) and phase:
        tone = OK if phase in _DONE_PHASES else FAILED if phase in _FAILED_PHASES else WAITING
        return phase, tone
    initialization = get_mapping(status.get("initialization"))
    if "dataSecretName" in status or "dataSecretCreated" in initialization:
        is_done = bool(status.get("dataSecretName"))
        return ("Data created", OK) if is_done else ("Waiting", WAITING)
    if "provisioned" in initialization:
        is_done = bool(initialization["provisioned"])
        return ("Provisioned", OK) if is_done else ("Provisioning", WAITING)
    address = get_mapping(status.get("addressRef")).get("name")
    if address:
        return "Bound", OK
    return _judge_by_condition(status, conditions)


def _judge_by_condition(status: JSON, conditions: list[ObjectCondition]) -> tuple[str, str]:
    if isinstance(status.get("ready"), bool):
        return ("Ready", OK) if status["ready"] else ("Not ready", WAITING)
    for type in ("Ready", "Available"):
        for each in conditions:
            if each.type == type:
                return (type, OK) if each.status == "True" else (f"Not {type.lower()}", WAITING)
    return "", NEUTRAL


def _is_paused(obj: Mapping[str, Any], conditions: list[ObjectCondition]) -> bool:
    annotations = get_mapping(get_mapping(obj.get("metadata")).get("annotations"))
    is_requested = _PAUSED_ANNOTATION in annotations or get_mapping(obj.get("spec")).get("paused")
    return bool(is_requested) or any(
        each.type == "Paused" and each.status == "True" for each in conditions
    )


def _describe_deletion(obj: Mapping[str, Any], conditions: list[ObjectCondition]) -> str:
    """Return the message of the condition on the deletion, or else the finalizers left."""
    for each in conditions:
        if each.type == "Deleting" and each.message:
            return " ".join(each.message.split())
    finalizers = get_sequence(get_mapping(obj.get("metadata")).get("finalizers"))
    return f"finalizers: {', '.join(map(str, finalizers))}" if finalizers else ""


def _describe_missing(obj: Mapping[str, Any]) -> str:
    """Return what a freshly created object lacks before any condition is set."""
    metadata = get_mapping(obj.get("metadata"))
    if not get_mapping(obj.get("status")):
        return "no status yet: its controller has not written any"
    if not get_sequence(metadata.get("ownerReferences")) and obj.get("kind") != "Cluster":
        return "no owner yet"
    return ""


def _with(conditions: list[ObjectCondition]) -> JSON:
    listed = [
        {
            "type": each.type,
            "status": each.status,
            "reason": each.reason,
            "message": each.message,
        }
        for each in conditions
    ]
    return {"status": {"conditions": listed}}
