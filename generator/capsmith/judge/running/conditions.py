"""The shape of conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.contract import V1BETA1
from capsmith.judge.running.model import Violated
from capsmith.judge.running.session import Session

_STATUSES = ("True", "False", "Unknown")


def check_conditions(session: Session, kind: str, name: str) -> None:
    """Raise Violated if a condition in any state of an object is not as the contract says."""
    for state in session.history.states(kind, name):
        for each in (state.get("status") or {}).get("conditions") or []:
            for problem in _problems(each, session.contract, state):
                where = session.subject(kind, name)
                raise Violated(problem, where, f"status.conditions[{each.get('type')}]")


def _problems(condition: dict[str, Any], contract: str, obj: JSON) -> Iterator[str]:
    kind = condition.get("type")
    if condition.get("status") not in _STATUSES:
        yield f"the status of {kind} is {condition.get('status')!r}"
    if not condition.get("lastTransitionTime"):
        yield f"{kind} has no lastTransitionTime"
    if contract == V1BETA1:
        if condition.get("severity") and condition.get("status") != "False":
            yield f"{kind} has a severity although it is {condition.get('status')}"
        return
    if not condition.get("reason"):
        yield f"{kind} has no reason"
    if "severity" in condition:
        yield f"{kind} has a severity, which metav1.Condition does not have"
    if int(condition.get("observedGeneration") or 0) > int(obj["metadata"].get("generation") or 0):
        yield f"the observedGeneration of {kind} is greater than the object's generation"
