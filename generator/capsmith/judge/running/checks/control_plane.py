"""Check control planes: the objects that they create, the status that they report, and deletion."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks.shared import check_conditions, wait_for_condition
from capsmith.judge.running.cluster_session import (
    OWNERLESS_CONFIG,
    WHOLE,
    ClusterSession,
    initialized_path,
    is_initialized,
)
from capsmith.judge.running.contract import PAUSED, V1BETA1, find_condition
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.objects import CLUSTER_NAME, CORE_GROUP
from capsmith.manifests.parse import mapping_of, read_substituted, text_of

_SECRET_TYPE = "cluster.x-k8s.io/secret"
_NAME_LABEL = f"{CORE_GROUP}/control-plane-name"
_PLUGINS = ("exec", "auth-provider")


def _control_plane(session: ClusterSession) -> JSON:
    session.ensure_whole_cluster()
    return session.latest(session.control_plane_kind, session.control_plane_name)


def _subject(session: ClusterSession) -> str:
    return session.subject(session.control_plane_kind, session.control_plane_name)


def _initialized(session: ClusterSession) -> None:
    _control_plane(session)
    states = session.history.states(session.control_plane_kind, session.control_plane_name)
    reports = [is_initialized(state, session.contract) for state in states]
    path = initialized_path(session.contract)
    # In a cluster that was taken over, nothing has waited for this yet.
    if True not in reports:
        raise Violated("it is not initialized", _subject(session), path)
    if False in reports[reports.index(True) :]:
        raise Violated("it was initialized, but no longer is", _subject(session), path)


def _kubeconfig(session: ClusterSession) -> None:
    control_plane = _control_plane(session)
    name = f"{WHOLE}-kubeconfig"
    secret = session.client.find("v1", "Secret", name, session.namespace)
    subject = session.subject("Secret", name)
    if secret is None:
        raise Violated("the control plane created no kubeconfig", subject)
    owners = [
        each["uid"]
        for each in secret["metadata"].get("ownerReferences") or []
        if each.get("controller")
    ]
    if owners != [control_plane["metadata"]["uid"]]:
        message = "the control plane does not control it"
        raise Violated(message, subject, "metadata.ownerReferences")
    if (secret["metadata"].get("labels") or {}).get(CLUSTER_NAME) != WHOLE:
        raise Violated(f"the label {CLUSTER_NAME} is missing", subject, "metadata.labels")
    if secret.get("type") != _SECRET_TYPE:
        raise Violated(f"the type is {secret.get('type')}", subject, "type")
    users = _kubeconfig_users(secret)
    if not users:
        raise Violated("the kubeconfig has no users", subject, "data.value")
    # Core's cluster cache refuses kubeconfigs with plugins (SEC-07).
    found = [each for user in users for each in _PLUGINS if mapping_of(user, "user").get(each)]
    if found:
        raise Violated(f"the kubeconfig authenticates with {found[0]}", subject, "data.value")


def _kubeconfig_users(secret: JSON) -> list[Any]:
    """Return the users of the kubeconfig in a Secret, or none if it cannot be read."""
    try:
        text = base64.b64decode(text_of(secret, "data", "value")).decode()
    except ValueError:
        return []
    manifests, _ = read_substituted(text, "kubeconfig", text)
    return [user for manifest in manifests for user in manifest.listing("users")]


def _replicas(session: ClusterSession) -> None:
    control_plane = _control_plane(session)
    expected = control_plane["spec"].get("replicas")
    if expected is None:
        raise Skipped("the control plane does not count its instances")
    names = ["replicas", "readyReplicas"]
    if session.contract != V1BETA1:
        names += ["availableReplicas", "upToDateReplicas"]

    def counted(obj: JSON) -> bool:
        status = obj.get("status") or {}
        return all(status.get(name) == expected for name in names)

    kind, name = session.control_plane_kind, session.control_plane_name
    what = f"{', '.join(names)} are not {expected}"
    found = session.wait(kind, name, counted, what, "status.replicas")
    # Only Machines can be selected, and a managed control plane has none.
    if session.members() and not (found.get("status") or {}).get("selector"):
        raise Violated("it has no selector", _subject(session), "status.selector")


def _version(session: ClusterSession) -> None:
    expected = str(_control_plane(session)["spec"].get("version") or "")
    if not expected:
        raise Skipped("the control plane has no version")

    def reported(obj: JSON) -> bool:
        found = str((obj.get("status") or {}).get("version") or "")
        # Some managed services report their version without a leading v.
        return found.removeprefix("v") == expected.removeprefix("v")

    kind, name = session.control_plane_kind, session.control_plane_name
    session.wait(kind, name, reported, f"the version is not {expected}", "status.version")


def _machines(session: ClusterSession) -> None:
    control_plane = _control_plane(session)
    uid, version = control_plane["metadata"]["uid"], control_plane["spec"].get("version")
    for machine in session.members():
        metadata, spec = machine["metadata"], machine["spec"]
        subject = session.subject("Machine", metadata["name"])
        owners = [each["uid"] for each in metadata.get("ownerReferences") or []]
        if uid not in owners:
            message = "the control plane does not own it"
            raise Violated(message, subject, "metadata.ownerReferences")
        if metadata["labels"].get(_NAME_LABEL) != session.control_plane_name:
            message = f"the label {_NAME_LABEL} does not name the control plane"
            raise Violated(message, subject, "metadata.labels")
        if spec.get("version") != version:
            raise Violated(f"the version is {spec.get('version')}", subject, "spec.version")
        for path in ("infrastructureRef", "bootstrap.configRef"):
            reference = spec
            for step in path.split("."):
                reference = reference.get(step) or {}
            if reference.get("name") != metadata["name"]:
                raise Violated("the object has another name", subject, f"spec.{path}.name")


def _available(session: ClusterSession) -> None:
    if session.contract == V1BETA1:
        raise Skipped("contract v1beta1 has no condition Available")
    _control_plane(session)
    kind, name = session.control_plane_kind, session.control_plane_name
    what, path = "the condition Available is not True", "status.conditions[Available]"
    obj = session.wait(kind, name, partial(_is, "Available", "True"), what, path)
    wait_for_condition(session, obj, "Available", "True")


def _conditions(session: ClusterSession) -> None:
    _control_plane(session)
    check_conditions(session, session.control_plane_kind, session.control_plane_name)


def _paused(session: ClusterSession) -> None:
    if session.contract == V1BETA1:
        raise Skipped("contract v1beta1 does not fix where the Paused condition is")
    obj = _control_plane(session)
    kind, name = session.control_plane_kind, session.control_plane_name
    for value, status in (("true", "True"), (None, "False")):
        session.client.patch(obj, {"metadata": {"annotations": {PAUSED: value}}})
        probe = partial(_is, "Paused", status)
        what, path = f"the condition Paused is not {status}", "status.conditions[Paused]"
        session.wait(kind, name, probe, what, path)


def _is(kind: str, status: str, obj: JSON) -> bool:
    return (find_condition(obj, kind) or {}).get("status") == status


def _deletion(session: ClusterSession) -> None:
    configs = [config["metadata"]["name"] for _, config in session.configs()]
    members = [machine["metadata"]["name"] for machine in session.members()]
    session.client.delete(session.ensure_whole_cluster())
    what = "its Cluster was deleted, but it still exists"
    for name in members:
        session.wait_deleted("Machine", name, what)
    for name in configs:
        session.wait_deleted(session.config_kind, name, what)
    session.wait_deleted(session.control_plane_kind, session.control_plane_name, what)
    session.wait_deleted("Cluster", WHOLE, "core does not delete it")
    # Comes last: nothing except its own deletion may remove a configuration without an owner.
    ownerless = session.latest(session.config_kind, OWNERLESS_CONFIG)
    session.client.delete(ownerless)
    session.wait_deleted(session.config_kind, OWNERLESS_CONFIG, "it was deleted, but still exists")


CONTROL_PLANE = (
    ConformanceCheck(
        "control-plane-initialized",
        "An initialized control plane stays initialized.",
        ("CP-02", "CP-03"),
        _initialized,
    ),
    ConformanceCheck(
        "control-plane-kubeconfig",
        "The control plane creates the kubeconfig of its cluster.",
        ("SEC-01", "SEC-07"),
        _kubeconfig,
    ),
    ConformanceCheck(
        "control-plane-replicas",
        "The control plane reports its replicas and their selector.",
        ("CP-04", "CP-05"),
        _replicas,
    ),
    ConformanceCheck(
        "control-plane-version",
        "The control plane reports the version that runs.",
        ("CP-08", "CP-39"),
        _version,
    ),
    ConformanceCheck(
        "control-plane-machines",
        "Machines of the control plane have its labels, its version and objects of their name.",
        ("CP-19",),
        _machines,
    ),
    ConformanceCheck(
        "control-plane-available",
        "A complete control plane has the condition Available.",
        ("CP-26",),
        _available,
    ),
    ConformanceCheck(
        "control-plane-conditions",
        "The conditions of a control plane have the shape of the contract.",
        ("ST-01", "ST-02"),
        _conditions,
    ),
    ConformanceCheck(
        "control-plane-paused",
        "The condition Paused of a control plane follows the pause.",
        ("ST-08",),
        _paused,
    ),
)
DELETION = (
    ConformanceCheck(
        "whole-deletion",
        "The deletion of a Cluster ends with its control plane and bootstrap configurations.",
        ("CP-34", "BC-19", "SM-04"),
        _deletion,
    ),
)
