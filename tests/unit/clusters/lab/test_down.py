"""The end of a lab whose files name the wrong process, or nothing that makes sense."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.clusters.lab.down import end_lab
from capsmith.clusters.lab.folder import LabFolder, find_holders, is_held
from capsmith.clusters.lab.state import read_lab

_HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""
linux = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="the system does not show who has a file open"
)


@pytest.fixture
def lab(tmp_path: Path) -> LabFolder:
    folder = LabFolder(tmp_path / "labs" / "acme")
    folder.root.mkdir(parents=True)
    return folder


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def hold(lock: Path) -> subprocess.Popen[bytes]:
    """Return a process that holds a lock."""
    process = subprocess.Popen([sys.executable, "-c", _HOLD, str(lock)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as lines:
        assert lines.readline() == b"held\n"
    return process


def write_state(lab: LabFolder, pid: object) -> None:
    state = {"pid": pid, "core": "", "series": "", "kubernetes": "", "kubeconfig": ""}
    lab.state.write_text(json.dumps({**state, "simulated": True, "components": []}))


@linux
@pytest.mark.parametrize("pid", ["stranger", "abc", -1, 0, 1, None])
def test_the_holder_of_the_lock_is_ended_whatever_the_state_says(
    lab: LabFolder, stranger: subprocess.Popen[bytes], pid: object
) -> None:
    holder = hold(lab.lock)
    write_state(lab, stranger.pid if pid == "stranger" else pid)
    assert find_holders(lab.lock) == [holder.pid]
    end_lab(lab)
    assert holder.wait(timeout=60) != 0
    assert stranger.poll() is None
    assert not lab.root.exists()


def test_without_a_holder_nobody_is_ended(
    lab: LabFolder, stranger: subprocess.Popen[bytes]
) -> None:
    lab.lock.touch()
    write_state(lab, stranger.pid)
    assert not is_held(lab.lock)
    end_lab(lab)
    assert stranger.poll() is None
    assert not lab.root.exists()


def test_a_state_of_brackets_is_damaged(lab: LabFolder) -> None:
    lab.state.write_text("[" * 100_000)
    assert read_lab(lab.state) is None
