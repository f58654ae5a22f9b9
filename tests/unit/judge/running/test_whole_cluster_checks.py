"""Each check of bootstrap and control plane providers passes if all is well, and finds faults."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks import WHOLE_CLUSTER
from capsmith.judge.running.cluster_session import OWNERLESS_CONFIG, WHOLE
from capsmith.judge.running.model import Skipped, Violated
from tests.unit.judge.running.memory import DirectHistory
from tests.unit.judge.running.whole_cluster import Edit, open_session

CHECKS = {check.name: check for check in WHOLE_CLUSTER}
WORKER_DATA = "Secret/worker-0-data"
KUBECONFIG = f"Secret/{WHOLE}-kubeconfig"


def changed(*path: str, to: Any) -> Edit:
    """Return an edit that sets a value; None removes it."""

    def edit(obj: JSON) -> None:
        for step in path[:-1]:
            obj = obj.setdefault(step, {})
        obj[path[-1]] = to

    return edit


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


PLUGIN = yaml.safe_dump({"users": [{"name": "admin", "user": {"exec": {"command": "aws"}}}]})
INCOMPLETE = [{"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}]
FAULTS: list[tuple[str, str, Edit, str]] = [
    ("bootstrap-data", WORKER_DATA, changed("type", to="Opaque"), "the type is Opaque"),
    ("bootstrap-data", WORKER_DATA, changed("data", "value", to=""), "value has no data"),
    ("bootstrap-data", WORKER_DATA, changed("metadata", "labels", to={}), "name the cluster"),
    ("bootstrap-data", WORKER_DATA, changed("data", "format", to=encoded("zip")), "is zip"),
    (
        "bootstrap-data",
        WORKER_DATA,
        changed("metadata", "ownerReferences", to=[]),
        "the configuration does not control it",
    ),
    (
        "bootstrap-data",
        "Machine/worker-0",
        changed("spec", "bootstrap", "dataSecretName", to="other"),
        "core copied a name other than worker-0-data",
    ),
    ("bootstrap-ready", "BoxConfig", changed("status", "conditions", to=[]), "Ready is missing"),
    (
        "bootstrap-conditions",
        "BoxConfig",
        changed("status", "conditions", to=INCOMPLETE),
        "Ready has no reason",
    ),
    (
        "bootstrap-sentinel",
        WORKER_DATA,
        changed("data", "value", to=encoded("#cloud-config")),
        "do not mention bootstrap-success.complete",
    ),
    ("control-plane-kubeconfig", KUBECONFIG, changed("type", to="Opaque"), "the type is Opaque"),
    (
        "control-plane-kubeconfig",
        KUBECONFIG,
        changed("data", "value", to=encoded(PLUGIN)),
        "the kubeconfig authenticates with exec",
    ),
    *(
        (
            "control-plane-kubeconfig",
            KUBECONFIG,
            changed("data", "value", to=value),
            "the kubeconfig has no users",
        )
        for value in ("%", "/w==", encoded(""), encoded("["), encoded("1"), encoded("[" * 9999))
    ),
    (
        "control-plane-kubeconfig",
        KUBECONFIG,
        changed("metadata", "ownerReferences", to=[]),
        "the control plane does not control it",
    ),
    (
        "control-plane-replicas",
        "BoxControlPlane",
        changed("status", "readyReplicas", to=0),
        "are not 1",
    ),
    (
        "control-plane-replicas",
        "BoxControlPlane",
        changed("status", "selector", to=""),
        "it has no selector",
    ),
    (
        "control-plane-version",
        "BoxControlPlane",
        changed("status", "version", to="v1.35.0"),
        "the version is not v1.36.0",
    ),
    (
        "control-plane-machines",
        "Machine/control-0",
        changed("spec", "version", to="v1.35.0"),
        "the version is v1.35.0",
    ),
    (
        "control-plane-machines",
        "Machine/control-0",
        changed("metadata", "ownerReferences", to=[]),
        "the control plane does not own it",
    ),
    (
        "control-plane-machines",
        "Machine/control-0",
        changed("spec", "infrastructureRef", "name", to="other"),
        "the object has another name",
    ),
    (
        "control-plane-available",
        "BoxControlPlane",
        changed("status", "conditions", to=[]),
        "the condition Available is not True",
    ),
    (
        "control-plane-conditions",
        "BoxControlPlane",
        changed("status", "conditions", to=INCOMPLETE),
        "Ready has no reason",
    ),
]
UNCHANGED = (
    "bootstrap-paused",
    "control-plane-paused",
    "bootstrap-lost-owner",
    "control-plane-lost-owner",
    "whole-deletion",
)


@pytest.mark.parametrize("name", CHECKS)
def test_a_good_cluster_passes(name: str) -> None:
    session, _ = open_session()
    CHECKS[name].run(session)


@pytest.mark.parametrize(
    ("name", "target", "edit", "message"), FAULTS, ids=[f"{row[0]}: {row[3]}" for row in FAULTS]
)
def test_a_fault_is_found(name: str, target: str, edit: Edit, message: str) -> None:
    session, _ = open_session({target: edit}, restores=False)
    with pytest.raises(Violated) as caught:
        CHECKS[name].run(session)
    assert message in str(caught.value)
    assert caught.value.subject


@pytest.mark.parametrize("name", UNCHANGED)
def test_a_manager_that_does_nothing_is_found(name: str) -> None:
    session, _ = open_session(reacts=False)
    with pytest.raises(Violated):
        CHECKS[name].run(session)


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("bootstrap-lost-owner", "Secret test/control-0-data"),
        ("control-plane-lost-owner", "Machine test/control-0"),
    ],
)
def test_owner_references_that_stay_lost_are_found(name: str, subject: str) -> None:
    """Report the object without owner, and leave it with the owner that it had."""
    session, memory = open_session(restores=False)
    kind, _, path = subject.partition(" ")
    key = path.partition("/")[2]
    before = (memory.find(kind, key) or {})["metadata"]["ownerReferences"]
    with pytest.raises(Violated, match="does not own it again") as caught:
        CHECKS[name].run(session)
    assert caught.value.subject == subject
    assert (memory.find(kind, key) or {})["metadata"]["ownerReferences"] == before


def test_data_of_a_configuration_without_a_machine_are_found() -> None:
    session, memory = open_session()
    config = memory.find("BoxConfig", OWNERLESS_CONFIG)
    assert config is not None
    memory.write({**config, "status": {"dataSecretName": "data"}})
    with pytest.raises(Violated, match="it reports data although no Machine owns it"):
        CHECKS["bootstrap-waits-for-owner"].run(session)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"dataSecretName": "worker-0-data"}, "the data were created, but later lost"),
        (
            {"initialization": {"dataSecretCreated": True}},
            "reported as created before their Secret was named",
        ),
        (
            {"initialization": {"dataSecretCreated": True}, "dataSecretName": "other"},
            "the name of the Secret changed",
        ),
    ],
)
def test_data_that_change_are_found(status: JSON, message: str) -> None:
    session, memory = open_session(reacts=False)
    config = memory.find("BoxConfig", "worker-0")
    assert config is not None
    memory.write({**config, "status": status})
    with pytest.raises(Violated, match=message):
        CHECKS["bootstrap-data-once"].run(session)


@pytest.mark.parametrize("name", ["bootstrap-data", "bootstrap-data-once"])
def test_reports_that_arrive_after_their_copy_in_the_machine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wait for the watch of configurations when that of Machines is ahead of it."""
    session, memory = open_session(reacts=False)
    history, wait = session.history, session.history.wait
    config = memory.find("BoxConfig", "worker-0")
    assert isinstance(history, DirectHistory)
    assert config is not None
    history.forget("BoxConfig", "worker-0")
    history.record("BoxConfig", {**config, "status": {}}, False)

    def deliver_and_wait(probe: Callable[[], Any], seconds: float) -> Any:
        history.record("BoxConfig", config, False)
        return wait(probe, seconds)

    monkeypatch.setattr(history, "wait", deliver_and_wait)
    CHECKS[name].run(session)


def test_a_machine_that_is_deleted_after_the_names_were_read_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, _ = open_session()
    session.ensure_whole_cluster()
    (member,) = session.members()
    history = session.history
    assert isinstance(history, DirectHistory)
    names = history.names("Machine")
    history.record("Machine", member, True)
    monkeypatch.setattr(history, "names", lambda kind: names)
    assert session.members() == []


def test_a_control_plane_that_is_initialized_no_longer_is_found() -> None:
    session, memory = open_session(reacts=False)
    control_plane = memory.find("BoxControlPlane", "control")
    assert control_plane is not None
    memory.write({**control_plane, "status": {}})
    with pytest.raises(Violated, match="it was initialized, but no longer is"):
        CHECKS["control-plane-initialized"].run(session)


def test_a_control_plane_that_was_never_initialized_is_found() -> None:
    """Report it in a cluster that is taken over, where nothing has waited for initialization."""
    session, memory = open_session(reacts=False)
    session.ensure_whole_cluster()
    control_plane = memory.find("BoxControlPlane", "control")
    history = session.history
    assert isinstance(history, DirectHistory)
    assert control_plane is not None
    history.forget("BoxControlPlane", "control")
    history.record("BoxControlPlane", {**control_plane, "status": {}}, False)
    with pytest.raises(Violated, match="it is not initialized"):
        CHECKS["control-plane-initialized"].run(session)


@pytest.mark.parametrize(
    ("name", "field"),
    [("control-plane-replicas", "replicas"), ("control-plane-version", "version")],
)
def test_what_a_control_plane_does_not_set_is_skipped(name: str, field: str) -> None:
    session, _ = open_session({"BoxControlPlane": changed("spec", field, to=None)})
    with pytest.raises(Skipped):
        CHECKS[name].run(session)
