"""Logs of a lab begin again when they have grown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capsmith.clusters.lab.folder import acquire, resolve_lab
from capsmith.clusters.lab.status import follow
from capsmith.clusters.lab.supervisor import rotate_logs


def test_a_process_goes_on_writing_into_the_same_file(tmp_path: Path) -> None:
    log = tmp_path / "provider" / "manager.log"
    log.parent.mkdir()
    small = tmp_path / "etcd.log"
    small.write_text("one\n")
    with log.open("ab", buffering=0) as process:
        process.write(b"former\n")
        rotate_logs(tmp_path, max_bytes=7)
        process.write(b"new\n")

    assert log.read_text() == "new\n"
    assert log.with_name("manager.log.1").read_text() == "former\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["etcd.log", "provider"]
    assert small.read_text() == "one\n"


def test_only_the_last_rotation_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "core.log"
    for line in ("first\n", "second\n"):
        log.write_text(line)
        rotate_logs(tmp_path, max_bytes=1)

    assert log.read_text() == ""
    assert (tmp_path / "core.log.1").read_text() == "second\n"


def test_a_log_is_emptied_where_it_cannot_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"part")
        raise OSError("No space left on device")

    monkeypatch.setattr("capsmith.clusters.lab.supervisor.shutil.copyfile", full)
    log = tmp_path / "core.log"
    log.write_text("one\n")

    rotate_logs(tmp_path, max_bytes=1)

    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("core.log", 0)]


def test_follow_reads_a_rotated_log_from_its_beginning(tmp_path: Path) -> None:
    lab = resolve_lab(tmp_path, "acme")
    lock = lab.create()
    log = lab.root / "core.log"
    log.write_text("one\n")
    lines = follow(lab, {"core": log}, from_start=True)

    assert next(lines) == ("core", "one")
    rotate_logs(lab.root, max_bytes=1)
    with log.open("a") as process:
        process.write("2\n")
    os.close(lock)

    assert list(lines) == [("core", "2")]
    assert acquire(lab.lock) is not None
