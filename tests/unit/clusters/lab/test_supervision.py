"""Components that end by themselves start again, at growing intervals."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.clusters.lab.supervision import SupervisedProcess
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
    assert notes == ["child has ended: last words"]
    state = component.state()
    assert (state.state, state.pid, state.reason) == ("restarting", 0, "last words")
    component.look(100.4, notes.append)
    assert component.state().restarts == 0
    component.look(100.5, notes.append)
    assert component.state().state == "running"
    assert (component.state().restarts, notes[1:]) == (1, ["child restarts"])


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
