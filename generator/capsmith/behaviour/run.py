"""Run checks one after another, and remove what they created."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.client import HTTPException

from capsmith.behaviour.model import Check, Outcome, Result, Selection, Skipped, Violated
from capsmith.behaviour.session import MISSING_CONFIG, Session
from capsmith.contract.model import Level, Rule
from capsmith.errors import CapsmithError
from capsmith.management.kube import JSON, ApiError, StaleError
from capsmith.management.wait import NotYet, eventually

_PAUSED = "cluster.x-k8s.io/paused"
_ALL = Selection()
_RECOMMENDED = frozenset({Level.SHOULD, Level.MAY})


def run_checks(
    session: Session,
    checks: Iterable[Check],
    rules: Mapping[str, Rule],
    selection: Selection = _ALL,
    progress: Callable[[Result], None] = lambda result: None,
) -> tuple[Result, ...]:
    """Run the selected checks, and return their results in order.

    ``rules`` are those of the provider's contract. Everything that the checks created is removed,
    also when the run is interrupted. Raises Refused if the namespace exists already.
    """
    results = []
    session.create_namespace()
    try:
        session.start()
        for check in checks:
            if selection.includes(check, rules):
                result = _result(session, check, rules)
                progress(result)
                results.append(result)
    finally:
        try:
            clean_up(session)
        finally:
            session.history.stop()
    return tuple(results)


def _result(session: Session, check: Check, rules: Mapping[str, Rule]) -> Result:
    violated = [rules[id] for id in check.rules if id in rules]
    began = time.monotonic()
    is_advice = {rule.level for rule in violated} <= _RECOMMENDED
    violation = Outcome.WARNING if is_advice else Outcome.FAILED
    outcome, message, subject, path, hint = _outcome(session, check, violation)
    return Result(
        name=check.name,
        title=check.title,
        rules=tuple(rule.id for rule in violated),
        outcome=outcome,
        message=message,
        subject=subject,
        path=path,
        hint=hint or next((rule.hint for rule in violated if rule.hint), ""),
        links=tuple(dict.fromkeys(rule.source for rule in violated)),
        seconds=time.monotonic() - began,
    )


def _outcome(
    session: Session, check: Check, violation: Outcome
) -> tuple[Outcome, str, str, str, str]:
    """Return outcome, message, object, path and hint of a check."""
    try:
        check.run(session)
    except Skipped as skipped:
        return Outcome.SKIPPED, str(skipped), "", "", ""
    except Violated as violated:
        return violation, str(violated), violated.subject, violated.path, violated.hint
    except ApiError as error:
        return Outcome.FAILED, f"the API server refused a request: {error}", "", "", ""
    except (OSError, HTTPException) as error:
        return Outcome.FAILED, f"the API server did not respond: {error}", "", "", ""
    except CapsmithError as error:
        return Outcome.FAILED, str(error), "", "", error.finding.hint
    return Outcome.PASSED, "", "", "", ""


def clean_up(session: Session) -> None:
    """Delete all objects of the run and its namespace.

    Finalizers are removed from objects that a manager does not release in time.
    """
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": session.namespace}}
    for each in _provider_objects(session):
        _resume(session, each, {"metadata": {"annotations": {_PAUSED: None}}})
    for each in session.client.list(session.core.api_version, "Machine", session.namespace):
        reference = each["spec"]["bootstrap"].get("configRef") or {}
        if reference.get("name") == MISSING_CONFIG:
            # Core may not know its kind, and then never deletes the Machine.
            session.provide_data(each)
    for each in session.client.list(session.core.api_version, "Cluster", session.namespace):
        _resume(session, each, {"spec": {"paused": False}})
        session.client.delete(each)
    for each in _ownerless(session):
        session.client.delete(each)
    with suppress(TimeoutError):
        eventually(lambda: _all_deleted(session), timeout=session.timing.cleanup)
    for each in [*_provider_objects(session), *_core_objects(session)]:
        session.client.delete(each)
        _resume(session, each, {"metadata": {"finalizers": None}})
    session.client.delete(namespace)


def _provider_objects(session: Session) -> list[JSON]:
    objects = session.objects
    return [
        each
        for version, kind in (
            (objects.machine_version, objects.machine_kind),
            (objects.cluster_version, objects.cluster_kind),
        )
        for each in session.client.list(version, kind, session.namespace)
    ]


def _core_objects(session: Session) -> list[JSON]:
    core = session.core.api_version
    kinds = ("MachineHealthCheck", "MachineDeployment", "MachineSet", "Machine", "Cluster")
    return [each for kind in kinds for each in session.client.list(core, kind, session.namespace)]


def _ownerless(session: Session) -> list[JSON]:
    found = _provider_objects(session)
    return [each for each in found if not each["metadata"].get("ownerReferences")]


def _all_deleted(session: Session) -> bool:
    left = [
        each["metadata"]["name"] for each in [*_provider_objects(session), *_core_objects(session)]
    ]
    if left:
        raise NotYet(f"still there: {left}")
    return True


def _resume(session: Session, obj: JSON, body: JSON) -> None:
    with suppress(StaleError):
        session.client.patch(obj, body)
