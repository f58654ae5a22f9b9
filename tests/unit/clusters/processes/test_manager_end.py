"""A manager that ends by itself is noticed; one that is killed or stopped is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from capsmith.clusters.processes.errors import ManagerEnded
from capsmith.clusters.processes.manager import ProviderManager
from capsmith.clusters.processes.process import Process
from capsmith.clusters.processes.wait import eventually


class _Manager(ProviderManager):
    """A manager whose process is given."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._is_wanted = False
        self._readiness = ""


def _manager(folder: Path, script: str) -> _Manager:
    return _Manager(Process("manager", [sys.executable, "-c", script], folder / "log"))


def test_a_manager_that_ends_is_noticed(tmp_path: Path) -> None:
    manager = _manager(tmp_path, "raise SystemExit('no credentials')")
    manager.check()
    manager.start()
    eventually(lambda: not manager.process.running, timeout=60, what="it has ended")

    with pytest.raises(ManagerEnded, match=r"(?s)exited with code 1.*no credentials"):
        manager.check()


@pytest.mark.parametrize("end", [ProviderManager.kill, ProviderManager.stop])
def test_a_manager_that_is_ended_is_expected(tmp_path: Path, end: object) -> None:
    manager = _manager(tmp_path, "import time; time.sleep(600)")
    manager.start()
    manager.check()
    assert callable(end)
    end(manager)

    manager.check()
