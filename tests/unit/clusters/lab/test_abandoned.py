"""A lab that starts while the command that waits for it is killed."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from capsmith.clusters.lab import supervisor
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.node.keeper import ABANDONED

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    former = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


def supervise(lab: LabFolder, node: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the supervisor's exit code if the pipe to the waiting command breaks."""

    def fail(*_: object) -> NoReturn:
        raise BrokenPipeError

    settings = {"root": str(lab.root), "tools": {}, "found": {}, "kubernetes": "", "node": node}
    monkeypatch.setattr(sys, "argv", ["supervisor", json.dumps(settings)])
    monkeypatch.setattr(supervisor, "_define", fail)
    return supervisor.main()


@pytest.fixture
def lab(tmp_path: Path) -> LabFolder:
    folder = LabFolder(tmp_path / "capsmith" / "lab" / "acme")
    folder.root.mkdir(parents=True)
    return folder


def test_the_supervisor_removes_the_folder(lab: LabFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    supervise(lab, {}, monkeypatch)
    assert not lab.root.exists()


def test_in_a_node_the_keeper_is_left_to_remove_the_folder(
    lab: LabFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert supervise(lab, {"kubernetes": "/tools"}, monkeypatch) == ABANDONED
    assert lab.root.is_dir()
