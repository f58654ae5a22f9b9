"""Components that end by themselves start again, at growing intervals."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.clusters.lab.supervision import SupervisedProcess, SupervisedServers, record_kill
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.process import Process
from capsmith.clusters.processes.wait import eventually

_CHILD = "import time; print('last words', flush=True); time.sleep(60)"


@pytest.fixture
def component(tmp_path: Path) -> Iterator[SupervisedProcess]:
    process = Process("child", [sys.executable, "-c", _CHILD], tmp_path / "child.log")
    process.start()
    yield SupervisedProcess("child", process)
    process.kill()


def test_a_component_that_runs_is_left_alone(component: SupervisedProcess) -> None:
    notes: list[str] = []
    pid = component.state().pid
    component.look(0.0, notes.append)
    assert (component.state().pid, notes) == (pid, [])


def test_a_killed_component_starts_again_after_its_wait(component: SupervisedProcess) -> None:
    notes: list[str] = []
    eventually(component.process.log.read_text, what="the log")
    component.process.send(signal.SIGKILL)
    eventually(lambda: not component.process.running, what="the end")
    component.look(100.0, notes.append)
    assert notes == ["child was terminated by SIGKILL"]
    state = component.state()
    assert (state.state, state.pid) == ("restarting", 0)
    assert state.reason == "was terminated by SIGKILL"
    component.look(100.4, notes.append)
    assert component.state().restarts == 0
    component.look(100.5, notes.append)
    assert component.state().state == "running"
    assert (component.state().restarts, notes[1:]) == (1, ["child restarts"])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print('last words'); sys.exit(3)", "exited with code 3: last words"),
        ("print('last words')", "exited with code 0: last words"),
        ("sys.exit(3)", "exited with code 3"),
        ("print('other', flush=True); os.kill(os.getpid(), 15)", "was terminated by SIGTERM"),
        ("print('why', flush=True); os.kill(os.getpid(), 6)", "was terminated by SIGABRT: why"),
        (
            "os.kill(os.getpid(), signal.SIGRTMIN + 1)",
            f"was terminated by signal {signal.SIGRTMIN + 1}",
        ),
    ],
)
def test_an_end_is_described_as_it_was(code: str, expected: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", f"import os, signal, sys; {code}"]
    component = SupervisedProcess("child", Process("child", command, tmp_path / "child.log"))
    component.process.start()
    eventually(lambda: not component.process.running, what="the end")
    notes: list[str] = []
    component.look(0.0, notes.append)
    assert notes == [f"child {expected}"]
    assert component.state().reason == expected
    with pytest.raises(ProcessError, match=f"child {expected.partition(':')[0]}:"):
        component.process.check()


def test_what_the_lab_kills_has_not_crashed(component: SupervisedProcess, tmp_path: Path) -> None:
    component.kills = tmp_path / "kills"
    seen: list[str] = []
    record_kill(component.kills, component.process.pid)
    component.process.kill()
    component.look(0.0, seen.append)
    assert component.state().reason == "was killed from the page of the lab"
    component.look(component.due, seen.append)
    component.process.kill()
    component.look(100.0, seen.append)
    assert seen == [
        "child was killed from the page of the lab",
        "child restarts",
        "child was terminated by SIGKILL",
    ]
    assert list(component.kills.iterdir()) == []


def test_expected_components_are_starting_until_they_are_added(
    component: SupervisedProcess, tmp_path: Path
) -> None:
    servers = SupervisedServers(tmp_path / "state.json", lambda: pytest.fail("not written"))
    servers.expect("child", "other")
    assert _states(servers) == {"child": "starting", "other": "starting"}
    servers.add("child", component.process)
    assert _states(servers) == {"child": "running", "other": "starting"}


def _states(servers: SupervisedServers) -> dict[str, str]:
    return {each.name: each.state for each in servers.list_states()}


def test_waits_grow_to_a_bound_and_are_forgiven(component: SupervisedProcess) -> None:
    waits, now = [], 0.0
    for _ in range(7):
        component.process.kill()
        component.look(now, lambda text: None)
        waits.append(component.due - now)
        now = component.due
        component.look(now, lambda text: None)
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    component.look(now + 61, lambda text: None)
    component.process.kill()
    component.look(now + 62, lambda text: None)
    assert component.due == now + 62.5
