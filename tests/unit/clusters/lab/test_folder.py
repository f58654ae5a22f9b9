"""Folders of labs: names, the lock that says what runs, what is left of a crashed one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from capsmith.clusters.lab.errors import LabError, convert_os_error, explain_process_error
from capsmith.clusters.lab.folder import (
    choose_lab,
    find_lab,
    find_labs_folder,
    list_labs,
    resolve_lab,
)
from capsmith.clusters.lab.state import (
    ComponentState,
    LabState,
    RunState,
    read_lab,
    read_run,
    write_state,
)
from capsmith.clusters.processes.errors import ProcessError
from capsmith.errors import CapsmithError, Refused, UnreadableInput

_STATE = LabState(
    pid=1,
    core="v1.13.6",
    series="v1.13",
    kubernetes="v1.34.4",
    kubeconfig="/k",
    simulated=True,
    components=(ComponentState("etcd", "running", 2),),
)


def test_the_folder_follows_the_environment() -> None:
    assert find_labs_folder({"XDG_STATE_HOME": "/state"}) == Path("/state/capsmith/lab")
    assert find_labs_folder({"HOME": "/home/me"}) == Path("/home/me/.local/state/capsmith/lab")
    # A relative path counts as none, as the specification of the variable says.
    relative = {"XDG_STATE_HOME": "state", "HOME": "/home/me"}
    assert find_labs_folder(relative) == Path("/home/me/.local/state/capsmith/lab")


@pytest.mark.parametrize("name", ["", "..", "a/b", "Acme", "-a", "a" * 41])
def test_a_name_that_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableInput) as caught:
        resolve_lab(tmp_path, name)
    assert caught.value.finding.id == "lab-name"


def test_a_lab_runs_while_its_lock_is_held(tmp_path: Path) -> None:
    lab = resolve_lab(tmp_path / "labs", "acme")
    seen = [lab.is_running]
    lock = lab.create()
    seen.append(lab.is_running)
    assert lab.root.stat().st_mode & 0o077 == 0
    with pytest.raises(Refused) as caught:
        resolve_lab(tmp_path / "labs", "acme").create()
    assert caught.value.finding.id == "lab-exists"
    os.close(lock)
    assert [*seen, lab.is_running] == [False, True, False]


def test_what_a_crashed_lab_has_left_is_replaced(tmp_path: Path) -> None:
    lab = resolve_lab(tmp_path / "labs", "acme")
    os.close(lab.create())
    (lab.root / "etcd-data").mkdir()
    (lab.root / "etcd-data" / "wal").write_text("old")
    os.close(lab.create())
    assert [path.name for path in lab.root.iterdir()] == ["lock"]


def test_nothing_is_left_of_the_last_lab(tmp_path: Path) -> None:
    labs = find_labs_folder({"XDG_STATE_HOME": str(tmp_path)})
    for name in ("acme", "ferry"):
        os.close(resolve_lab(labs, name).create())
    resolve_lab(labs, "acme").remove()
    assert list_labs(labs) == ["ferry"]
    resolve_lab(labs, "ferry").remove()
    assert list(tmp_path.iterdir()) == []


def test_the_lab_is_the_named_one_the_providers_or_the_only_one(tmp_path: Path) -> None:
    for name in ("acme", "ferry"):
        (tmp_path / name).mkdir()
    assert choose_lab(tmp_path, "acme", "ferry").name == "acme"
    assert choose_lab(tmp_path, None, "ferry").name == "ferry"
    with pytest.raises(LabError, match="several labs exist: acme, ferry"):
        choose_lab(tmp_path, None, "other")
    (tmp_path / "ferry").rmdir()
    assert choose_lab(tmp_path, None, "other").name == "acme"


def test_a_lab_that_was_not_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError) as named_one:
        find_lab(tmp_path, "acme")
    with pytest.raises(LabError) as any_one:
        choose_lab(tmp_path, None, None)
    assert {each.value.finding.id for each in (named_one, any_one)} == {"lab-not-running"}


def test_states_come_back(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_state(path, _STATE)
    assert read_lab(path) == _STATE
    run = RunState(3, "/acme", "v0.1.0", "running", _STATE.components)
    write_state(path, run)
    assert read_run(path) == run
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_damaged_state_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    assert read_lab(path) is None
    assert read_run(path) is None


@pytest.mark.parametrize(
    ("error", "id"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "lab-disk-full"),
        (PermissionError(errno.EACCES, "Permission denied", "/state"), "lab-files"),
    ],
)
def test_errors_of_the_disk_are_named(tmp_path: Path, error: OSError, id: str) -> None:
    assert convert_os_error(error, tmp_path).finding.id == id


@pytest.mark.parametrize(
    ("log", "id"),
    [
        ("write snap: no space left on device", "lab-disk-full"),
        ("listen tcp 127.0.0.1:1: bind: address already in use", "lab-port-taken"),
        ("exit status 1", "process-failed"),
    ],
)
def test_the_log_of_a_process_tells_the_reason(tmp_path: Path, log: str, id: str) -> None:
    error: CapsmithError = explain_process_error(ProcessError(f"etcd ended:\n{log}"), tmp_path)
    assert error.finding.id == id
