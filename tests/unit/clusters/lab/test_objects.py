"""The table of `capsmith lab demo`: its rows, who waits for whom, when the demo ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capsmith.clusters.lab.objects import (
    Cluster,
    MachineObjects,
    ObjectRow,
    describe_changes,
    find_blocker,
    format_rows,
)
from tests.unit.clusters.lab.objects import (
    bootstrap,
    cluster,
    condition,
    control_plane,
    deployment,
    infrastructure,
    machine,
    managed_control_plane,
)

_WAITING = condition("InfrastructureReady", "False", "AcmeMachine is not provisioned")
_STARTING = Cluster(
    cluster=cluster("Provisioned"),
    control_plane=control_plane(1, 1),
    deployments=(deployment(1, 0),),
    machines=(
        MachineObjects(machine("cp", "Running"), infrastructure("cp", provisioned=True)),
        MachineObjects(
            machine("worker", "Pending", _WAITING, of="MachineSet"),
            infrastructure("worker", provisioned=False),
            bootstrap("worker", condition("Ready", "False", "no certificates")),
        ),
    ),
)


def test_each_object_is_below_what_it_belongs_to() -> None:
    assert [(row.depth, row.kind, row.name, row.state) for row in format_rows(_STARTING)] == [
        (0, "Cluster", "demo", "Provisioned"),
        (1, "KubeadmControlPlane", "demo-cp", "1 of 1 ready"),
        (2, "Machine", "cp", "Running"),
        (3, "AcmeMachine", "cp", "Provisioned"),
        (1, "MachineDeployment", "demo-md-0", "0 of 1 ready"),
        (2, "Machine", "worker", "Pending"),
        (3, "AcmeConfig", "worker", "Waiting"),
        (3, "AcmeMachine", "worker", "Provisioning"),
    ]


def test_a_row_says_what_it_waits_for() -> None:
    waiting = {row.name: row.waiting for row in format_rows(_STARTING) if row.kind == "Machine"}
    assert waiting == {"cp": "", "worker": "InfrastructureReady: AcmeMachine is not provisioned"}


def test_a_managed_control_plane_says_what_it_waits_for() -> None:
    quota = condition("Available", "False", "10 control planes", "QuotaExceeded")
    for initialized, blockers, state, waiting in (
        (False, [quota], "Initializing", "Available (QuotaExceeded): 10 control planes"),
        (True, [], "Initialized", ""),
    ):
        managed = managed_control_plane(*blockers, initialized=initialized)
        _, row = format_rows(Cluster(cluster(), control_plane=managed))
        assert (row.state, row.waiting) == (state, waiting)


def test_a_bootstrap_configuration_says_what_it_waits_for() -> None:
    (row,) = (row for row in format_rows(_STARTING) if row.kind == "AcmeConfig")
    assert row.waiting == "Ready: no certificates"


def test_a_machine_without_a_known_owner_has_a_row() -> None:
    found = Cluster(cluster(), machines=(MachineObjects(machine("lone", "Pending", of="Other")),))
    assert [row.name for row in format_rows(found)] == ["demo", "lone"]


def test_nothing_is_shown_before_the_cluster_exists() -> None:
    assert format_rows(Cluster(None)) == []


def test_an_object_that_is_being_deleted_says_so() -> None:
    deleted = machine("cp", "Running")
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    _, row = format_rows(Cluster(cluster(), machines=(MachineObjects(deleted),)))
    assert row.state == "Deleting"


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ([], ""),
        ([condition("Ready", "True")], ""),
        ([condition("Paused", "False"), condition("Deleting", "Unknown")], ""),
        ([condition("Ready", "False", reason="Waiting")], "Ready: Waiting"),
        ([condition("Ready", "Unknown")], "Ready"),
        ([condition("Zeal", "False", "z"), condition("Art", "False", "a")], "Art: a"),
        ([condition("Art", "False", "a"), condition("Ready", "False", "r")], "Ready: r"),
        ([condition("Ready", "False", "r"), condition("Healthy", "Unknown", "h")], "Healthy: h"),
        ([condition("Ready", "False", "* first:\n  * second")], "Ready: first: second"),
    ],
)
def test_the_condition_that_holds_up_most_is_named(
    conditions: list[dict[str, str]], text: str
) -> None:
    blocker = find_blocker({"status": {"conditions": conditions}})
    assert (blocker.text if blocker else "") == text


def test_a_long_message_is_shown_whole() -> None:
    message = "no room in any zone, " * 40
    blocker = find_blocker({"status": {"conditions": [condition("Ready", "False", message)]}})
    assert blocker is not None
    assert blocker.text == f"Ready: {message.strip()}"


def row_of(message: str, reason: str, **spec: object) -> ObjectRow:
    """Return the demo's row of an AcmeMachine that is not ready."""
    found = infrastructure("m", provisioned=False)
    found["spec"] = spec
    found["metadata"]["namespace"] = "default"
    found["status"]["conditions"] = [condition("Ready", "False", message, reason)]
    machines = (MachineObjects(machine("m", "Running"), found),)
    return format_rows(Cluster(cluster(), machines=machines))[-1]


def test_a_row_of_the_demo_is_short_and_hides_secrets() -> None:
    message = f"{'no room in any zone, ' * 4}password=correct-horse-battery-staple {'y' * 200}"
    assert row_of(message, "OutOfRoom").waiting == (
        f"Ready (OutOfRoom): {'no room in any zone, ' * 4}password=(hidden) …"
    )


def test_a_row_of_the_demo_has_no_control_characters() -> None:
    row = row_of("401 Unauthorized\x1b[2J", "InternalError", credentialsRef={"name": "a\x1b[31m"})
    assert row.waiting == (
        "Ready (InternalError): 401 Unauthorized\\x1b[2J (Secret default/a\\x1b[31m)"
    )


def test_the_secret_of_a_long_error_is_named() -> None:
    row = row_of(f"{'x' * 200} 401 Unauthorized", "LoginRefused", credentialsRef={"name": "login"})
    message = f"{'x' * 50} … {'x' * 33} 401 Unauthorized"
    assert row.waiting == f"Ready (LoginRefused): {message} (Secret default/login)"


def test_the_cause_at_the_end_of_a_long_error_is_shown() -> None:
    message = (
        "HTTPSConnectionPool(host='cloud.example.com', port=8006): Max retries exceeded with url: /"
        " (Caused by NewConnectionError('[Errno 111] Connection refused'))"
    )
    waiting = row_of(message, "Unreachable").waiting
    assert waiting.startswith("Ready (Unreachable): HTTPSConnectionPool(host='cloud.example.com'")
    assert waiting.endswith("[Errno 111] Connection refused'))")


def test_a_wait_of_the_demo_names_no_secret() -> None:
    message = "Machine m does not name a bootstrap Secret"
    row = row_of(message, "WaitingForBootstrapData", sshKeySecretRef={"name": "ssh"})
    assert row.waiting == f"Ready (WaitingForBootstrapData): {message}"


@pytest.mark.parametrize(
    ("reason", "is_error"),
    [
        ("InternalError", True),
        ("LoginRefused", True),
        ("SecretNotFound", True),
        ("Cloning", False),
        ("WaitingForBootstrapData", False),
        ("WaitingForInvalidOne", False),
        ("", False),
    ],
)
def test_errors_differ_from_waits(reason: str, is_error: bool) -> None:
    blocker = find_blocker({"status": {"conditions": [condition("Ready", "False", reason=reason)]}})
    assert blocker is not None
    assert blocker.is_error is is_error


@pytest.mark.parametrize(
    ("reason", "message", "text"),
    [
        ("Cloning", "task-117", "InfrastructureReady (Cloning): task-117"),
        ("Cloning", "", "InfrastructureReady: Cloning"),
        ("Cloning", "Cloning, 5 %", "InfrastructureReady: Cloning, 5 %"),
        ("NotReady", "no VM", "InfrastructureReady: no VM"),
    ],
)
def test_a_row_has_the_reason_beside_the_message(reason: str, message: str, text: str) -> None:
    waiting = machine(
        "worker", "Pending", condition("InfrastructureReady", "False", message, reason=reason)
    )
    rows = format_rows(Cluster(cluster(), machines=(MachineObjects(waiting),)))
    assert rows[1].waiting == text


def test_the_demo_ends_when_all_machines_run() -> None:
    assert (_STARTING.wanted, _STARTING.running, _STARTING.is_running) == (2, 1, False)
    running = tuple(MachineObjects(machine(name, "Running")) for name in ("cp", "worker"))
    assert replace(_STARTING, machines=running).is_running
    assert not replace(_STARTING, machines=running[:1]).is_running
    assert not Cluster(cluster("Provisioned")).is_running


def test_the_demo_of_a_cluster_without_machines_ends_when_it_is_provisioned() -> None:
    found = Cluster(cluster("Provisioned"), infrastructure("demo", provisioned=True))
    assert found.is_running
    assert not replace(found, cluster=cluster("Provisioning")).is_running
    classy = cluster("Provisioned")
    classy["spec"]["topology"] = {"workers": {"machineDeployments": [{"name": "md-0"}]}}
    assert not replace(found, cluster=classy).is_running


def test_only_rows_that_are_new_or_different_are_changes() -> None:
    first, second = ObjectRow(0, "Cluster", "a", "Pending", ""), ObjectRow(
        1, "Machine", "b", "Pending", ""
    )
    changed = replace(second, state="Running")
    assert describe_changes([], [first, second]) == [first, second]
    assert describe_changes([first, second], [first, changed]) == [changed]
    assert describe_changes([first], [first]) == []
