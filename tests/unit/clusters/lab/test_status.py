"""The output of `capsmith lab status` and `logs`, derived from files and locks alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from capsmith.clusters.lab.demo import format_hints
from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.folder import LabFolder, acquire, resolve_lab
from capsmith.clusters.lab.objects import Cluster, MachineObjects
from capsmith.clusters.lab.state import ComponentState, LabState, RunState, write_state
from capsmith.clusters.lab.status import (
    follow,
    format_lines,
    format_table,
    read_last_lines,
    read_status,
    select_logs,
    to_data,
)
from tests.unit.clusters.lab.objects import (
    bootstrap,
    cluster,
    control_plane,
    deployment,
    infrastructure,
    machine,
)


@pytest.fixture
def lab(tmp_path: Path) -> LabFolder:
    lab = resolve_lab(tmp_path, "acme")
    os.close(lab.create())
    return lab


@pytest.fixture
def running(lab: LabFolder) -> Iterator[LabFolder]:
    """Return a lab that, by its files and locks, runs with its provider."""
    with ExitStack() as ends:
        for path in (lab.lock, lab.run_lock):
            lock = acquire(path)
            assert lock is not None
            ends.callback(os.close, lock)
        write_state(lab.state, _lab_state(lab))
        write_state(lab.run_state, _run_state(lab))
        yield lab


def _lab_state(lab: LabFolder) -> LabState:
    log = lab.root / "etcd.log"
    log.write_text("one\ntwo\n")
    return LabState(
        pid=1,
        core="v1.13.6",
        series="v1.13",
        kubernetes="v1.34.4",
        kubeconfig="/k",
        simulated=True,
        components=(ComponentState("etcd", "running", 2, 0, str(log)),),
    )


def _run_state(lab: LabFolder) -> RunState:
    log = lab.root / "manager-infrastructure.log"
    log.write_text("ready\n")
    manager = ComponentState("manager-infrastructure", "running", 3, 1, str(log))
    return RunState(4, "/acme", "v0.1.0", "running", (manager,))


def test_everything_runs(running: LabFolder) -> None:
    status = read_status(running)
    assert status.is_healthy
    assert format_lines(status)[0] == "lab acme: runs"
    assert format_table(status)[1:] == [
        ("etcd", "running", "2", "0", ""),
        ("manager-infrastructure", "running", "3", "1", ""),
    ]


def test_a_component_that_starts_again_is_not_healthy(running: LabFolder) -> None:
    state = _lab_state(running)
    ended = replace(state.components[0], state="restarting", pid=0, reason="panic")
    write_state(running.state, replace(state, components=(ended,)))
    status = read_status(running)
    assert not status.is_healthy
    assert format_table(status)[1] == ("etcd", "restarting", "-", "0", "panic")


def test_a_manager_that_does_not_start_is_not_healthy(running: LabFolder) -> None:
    write_state(
        running.run_state, RunState(4, "/acme", "v0.1.0", "crashed", (), "SyntaxError\nline 1")
    )
    status = read_status(running)
    assert not status.is_healthy
    assert "    SyntaxError" in format_lines(status)


def test_a_manager_that_is_starting_is_shown_and_not_healthy(running: LabFolder) -> None:
    run, name = _run_state(running), "manager-infrastructure"
    starting = ComponentState.starting(name, 5)
    write_state(running.run_state, replace(run, state="starting", components=(starting,)))
    status = read_status(running)
    assert not status.is_healthy
    assert format_table(status)[2] == (name, "starting", "5", "0", "not ready yet")
    assert format_lines(status)[-1] == "  provider /acme v0.1.0: starting"


def test_a_lab_whose_servers_are_starting_says_so(running: LabFolder) -> None:
    state = _lab_state(running)
    machines = ComponentState.starting("machines")
    write_state(running.state, replace(state, components=(*state.components, machines)))
    status = read_status(running)
    assert not status.is_healthy
    assert format_lines(status)[0] == "lab acme: starts"


def test_a_crashed_lab_says_so(lab: LabFolder) -> None:
    write_state(lab.state, _lab_state(lab))
    write_state(lab.run_state, _run_state(lab))
    status = read_status(lab)
    assert (status.is_running, status.is_healthy, status.run) == (False, False, None)
    assert format_lines(status)[0] == "lab acme: has crashed"
    assert format_lines(status)[-1].endswith("capsmith lab down --name acme")
    assert format_table(status)[1] == ("etcd", "stopped", "-", "0", "")


def test_a_lab_that_has_not_started_says_so(lab: LabFolder) -> None:
    assert format_lines(read_status(lab)) == ["lab acme: has not started"]


def test_data_for_machines(running: LabFolder) -> None:
    found = to_data(read_status(running))
    assert (found["name"], found["running"], found["healthy"]) == ("acme", True, True)
    assert found["provider"] == {"folder": "/acme", "version": "v0.1.0", "state": "running"}
    assert [each["name"] for each in found["components"]] == ["etcd", "manager-infrastructure"]


@pytest.mark.parametrize(
    ("count", "expected"),
    [(-1, ["one", "two"]), (0, []), (1, ["two"]), (2, ["one", "two"]), (50, ["one", "two"])],
)
def test_the_last_lines_of_a_log(running: LabFolder, count: int, expected: list[str]) -> None:
    assert read_last_lines(select_logs(running, "etcd")["etcd"], count) == expected


def test_logs_are_chosen_by_component(running: LabFolder) -> None:
    assert set(select_logs(running, None)) == {"etcd", "manager-infrastructure"}
    assert set(select_logs(running, "manager")) == {"manager-infrastructure"}
    with pytest.raises(LabError, match="no log of kubelet") as caught:
        select_logs(running, "kubelet")
    assert caught.value.finding.hint == "Use one of etcd, manager-infrastructure."


def test_new_lines_are_followed_until_the_lab_ends(lab: LabFolder) -> None:
    path = lab.root / "etcd.log"
    path.write_text("old\n")
    lock = acquire(lab.lock)
    assert lock is not None
    found = follow(lab, {"etcd": path}, from_start=True)
    assert next(found) == ("etcd", "old")
    with path.open("a") as log:
        log.write("new\npart")
        log.flush()
        assert next(found) == ("etcd", "new")
        log.write("ial\n")
    os.close(lock)
    assert list(found) == [("etcd", "partial")]


def test_hints_name_exact_commands(running: LabFolder) -> None:
    provided = infrastructure("cp", provisioned=True)
    made = Cluster(
        cluster("Provisioned"),
        control_plane=control_plane(1, 1),
        deployments=(deployment(2, 2),),
        machines=(MachineObjects(machine("cp", "Running"), provided, bootstrap("cp")),),
    )
    text = "\n".join(format_hints("acme", _lab_state(running), _run_state(running), made))
    for command in (
        "export KUBECONFIG=/k",
        "get cluster,machine,kubeadmcontrolplane,acmeconfig,acmemachine",
        "scale machinedeployment demo-md-0 --replicas 4",
        "kill -9 3",
        "delete cluster demo",
        "capsmith lab down --name acme",
    ):
        assert command in text
