"""What bootstrap and control plane providers must not leave behind, written in their place.

Their cluster is paused, so that neither they nor core repair it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually
from capsmith.judge.running.checks import WHOLE_CLUSTER
from capsmith.judge.running.cluster_session import OWNERLESS_CONFIG, ClusterSession
from capsmith.judge.running.model import Violated
from capsmith.judge.running.objects import CLUSTER_NAME, CORE_GROUP

_CHECKS = {check.name: check for check in WHOLE_CLUSTER}
_LATER = 1000


@dataclass(frozen=True)
class Violation:
    """A check, the object at which it fails, and the patch that makes it fail."""

    check: str
    find: Callable[[ClusterSession], JSON]
    patch: Callable[[JSON], JSON]
    subresource: str | None = None


def found_violation(session: ClusterSession, violation: Violation) -> Violated:
    """Return what the check says of the patched object, which is then as before."""
    with _patched(session, violation):
        return violated(session, violation.check)


def violated(session: ClusterSession, name: str) -> Violated:
    """Return how a check fails, once the session has seen what makes it fail."""

    def failure() -> Violated:
        try:
            _CHECKS[name].run(session)
        except Violated as error:
            return error
        raise NotYet(f"{name} passes")

    return eventually(failure, what=f"{name} fails")


@contextmanager
def _patched(session: ClusterSession, violation: Violation) -> Iterator[None]:
    obj = violation.find(session)
    patch = violation.patch(obj)
    session.client.patch(obj, patch, violation.subresource)
    yield
    session.client.patch(obj, _inverse(patch, obj), violation.subresource)


def _inverse(patch: JSON, obj: JSON) -> JSON:
    """Return the patch that restores what another one changes."""
    back: JSON = {}
    for key, value in patch.items():
        before = obj.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            back[key] = _inverse(value, before)
        else:
            back[key] = before
    return back


def _config(session: ClusterSession) -> JSON:
    return session.configs()[0][1]


def _data(session: ClusterSession) -> JSON:
    name = _config(session)["status"]["dataSecretName"]
    return session.client.get("v1", "Secret", name, session.namespace)


def _kubeconfig(session: ClusterSession) -> JSON:
    name = f"{session.ensure_whole_cluster()['metadata']['name']}-kubeconfig"
    return session.client.get("v1", "Secret", name, session.namespace)


def _ownerless(session: ClusterSession) -> JSON:
    return session.latest(session.config_kind, OWNERLESS_CONFIG)


def _control_plane(session: ClusterSession) -> JSON:
    return session.latest(session.control_plane_kind, session.control_plane_name)


def _member(session: ClusterSession) -> JSON:
    return session.members()[0]


def _always(patch: JSON) -> Callable[[JSON], JSON]:
    return lambda obj: patch


def _condition(kind: str, change: JSON) -> Callable[[JSON], JSON]:
    def patch(obj: JSON) -> JSON:
        conditions = copy.deepcopy(obj["status"]["conditions"])
        for each in conditions:
            if each["type"] == kind:
                each |= change
        return {"status": {"conditions": conditions}}

    return patch


def _status(status: JSON) -> Callable[[JSON], JSON]:
    return _always({"status": status})


_FALSE = {"status": "False"}
_FROM_LATER = {"observedGeneration": _LATER}
VIOLATIONS = (
    Violation(
        "bootstrap-waits-for-owner", _ownerless, _status({"dataSecretName": "none"}), "status"
    ),
    Violation("bootstrap-data", _data, _always({"metadata": {"labels": {CLUSTER_NAME: None}}})),
    Violation("bootstrap-sentinel", _data, _always({"data": {"value": "Kg=="}})),
    Violation(
        "bootstrap-data-once",
        _config,
        _status({"initialization": {"dataSecretCreated": False}}),
        "status",
    ),
    Violation("bootstrap-ready", _config, _condition("Ready", _FALSE), "status"),
    Violation("bootstrap-conditions", _config, _condition("Ready", _FROM_LATER), "status"),
    Violation(
        "control-plane-initialized",
        _control_plane,
        _status({"initialization": {"controlPlaneInitialized": False}}),
        "status",
    ),
    Violation(
        "control-plane-kubeconfig", _kubeconfig, _always({"metadata": {"ownerReferences": None}})
    ),
    Violation("control-plane-replicas", _control_plane, _status({"replicas": 7}), "status"),
    Violation("control-plane-version", _control_plane, _status({"version": "v1.0.0"}), "status"),
    Violation(
        "control-plane-machines",
        _member,
        _always({"metadata": {"labels": {f"{CORE_GROUP}/control-plane-name": None}}}),
    ),
    Violation("control-plane-available", _control_plane, _condition("Available", _FALSE), "status"),
    Violation(
        "control-plane-conditions", _control_plane, _condition("Available", _FROM_LATER), "status"
    ),
)
"""One of each check that needs no pause and no deletion."""

WITHOUT_REPAIR = (
    "bootstrap-paused",
    "control-plane-paused",
    "bootstrap-lost-owner",
    "control-plane-lost-owner",
    "whole-deletion",
)
"""Checks that fail in a paused cluster by themselves; the last one deletes it."""
