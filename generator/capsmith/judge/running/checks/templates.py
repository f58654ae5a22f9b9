"""Machine templates: a change is refused, except in the dry runs of core's topology controller."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from capsmith.clusters.processes.kube import JSON, ApiError
from capsmith.judge.running.checks.shared import MAIN
from capsmith.judge.running.model import Check, Skipped, Violated
from capsmith.judge.running.session import Session

_NAME = "main-template"
_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"
_MANAGER = "capi-topology"
_REFUSALS = (403, 422)


def _immutable(session: Session) -> None:
    template = _template(session)
    for changed in _changes(template):
        if _is_valid(session, changed):
            if not _refused(session, changed):
                message = "a change of spec.template.spec was accepted"
                where = session.subject(template["kind"], _NAME)
                raise Violated(message, where, "spec.template.spec")
            return
    raise Skipped("no field of spec.template.spec has another valid value")


def _dry_run(session: Session) -> None:
    template = _template(session)
    for changed in _changes(template):
        if _is_valid(session, changed):
            changed["metadata"]["annotations"] = {_DRY_RUN: ""}
            refusal = _refused(session, changed)
            if refusal:
                message = f"a dry run of core's topology controller was refused: {refusal}"
                where = session.subject(template["kind"], _NAME)
                raise Violated(message, where, "spec.template.spec")
            return
    raise Skipped("no field of spec.template.spec has another valid value")


def _template(session: Session) -> JSON:
    template = session.objects.template(MAIN, session.namespace, _NAME)
    session.once("the creation of a template", lambda: _create(session, template))
    return template


def _create(session: Session, template: JSON) -> None:
    session.client.apply(template, _MANAGER)


def _refused(session: Session, template: JSON) -> str:
    """Return the message with which a dry run of an update is refused; empty if it is not."""
    try:
        session.client.apply(template, _MANAGER, dry_run=True)
    except ApiError as error:
        if error.status not in _REFUSALS:
            raise
        return error.message
    return ""


def _is_valid(session: Session, template: JSON) -> bool:
    """Return whether a new template with the same content would be accepted."""
    other = copy.deepcopy(template)
    other["metadata"]["name"] = f"{_NAME}-other"
    return not _refused(session, other)


def _changes(template: JSON) -> Iterator[JSON]:
    """Yield the template with one of its fields changed."""
    spec = template["spec"]["template"].get("spec") or {}
    for key, value in spec.items():
        other = _other(value)
        if other is not None:
            changed = copy.deepcopy(template)
            changed["spec"]["template"]["spec"][key] = other
            yield changed


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value * 2 or 1
    return f"{value}x" if isinstance(value, str) else None


TEMPLATES = (
    Check(
        "template-immutable",
        "A change of a machine template's spec.template.spec is refused.",
        ("IM-13",),
        _immutable,
    ),
    Check(
        "template-dry-run",
        "Core's topology controller may try a change of a machine template in a dry run.",
        ("IM-14",),
        _dry_run,
    ),
)
