"""The end-to-end tests' processes: one that is kept is started again, as a Deployment does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.process import KEPT_STARTS, Process
from capsmith.clusters.processes.wait import eventually

_CHILD = """
import pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
starts = folder / "starts"
with starts.open("a") as stream:
    stream.write("one\\n")
if len(starts.read_text().splitlines()) == 1:
    sys.exit(1)
def leave(*_):
    time.sleep(0.3)
    (folder / "left").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
(folder / "ready").touch()
time.sleep(60)
"""


@pytest.fixture
def kept(tmp_path: Path) -> Process:
    argv = [sys.executable, "-c", _CHILD, str(tmp_path)]
    return Process("kept", argv, tmp_path / "log", kept=True)


def test_failing_starts_again(kept: Process, tmp_path: Path) -> None:
    kept.start()
    eventually((tmp_path / "ready").exists, timeout=60, what="the second start")

    assert (tmp_path / "starts").read_text().splitlines() == ["one", "one"]
    assert _CHILD in Path(f"/proc/{kept.pid}/cmdline").read_text()
    kept.stop()
    assert (tmp_path / "left").exists(), "it was not waited for"
    assert not kept.running


def test_kill_ends_both(kept: Process, tmp_path: Path) -> None:
    kept.start()
    eventually((tmp_path / "ready").exists, timeout=60, what="the second start")
    component = kept.pid

    kept.kill()

    eventually(lambda: not _alive(component), timeout=60, what="the component gone")
    assert not kept.running
    assert not (tmp_path / "left").exists()


def test_one_that_fails_at_each_start_is_given_up(tmp_path: Path) -> None:
    script = "print('no credentials', flush=True); raise SystemExit(3)"
    failing = Process("failing", [sys.executable, "-c", script], tmp_path / "log", kept=True)
    failing.start()

    eventually(lambda: not failing.running, timeout=60, what="it is given up")

    with pytest.raises(ProcessError) as caught:
        failing.check()
    message = str(caught.value)
    assert f"exited with code 3 soon after each of {KEPT_STARTS} starts" in message
    assert message.endswith("no credentials")
    assert failing.log.read_text().splitlines() == ["no credentials"] * KEPT_STARTS


def _alive(pid: int) -> bool:
    try:
        # A process that has not been reaped yet is dead all the same.
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
